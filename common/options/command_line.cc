#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_split.h"
#include "common/exit_codes.h"
#include "common/log.h"
#include "common/options/log_setup.h"
#include "common/options/values.h"
#include "common/version.h"

namespace penstock::options {
namespace {

// As records of the log with --log-format json, else in the style of other programs.
void PrintErrors(const Values& values, std::string_view component, const absl::Status& status) {
  const std::string_view name = values.program().name;
  const bool json = LogsJson(values);
  if (json) ConfigureLog(values, component);
  for (absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    const std::string text(line);
    if (json) {
      log::Error(text);
    } else {
      std::fprintf(stderr, "%s: error: %s\n", std::string(name).c_str(), text.c_str());
    }
  }
}

void PrintWarnings(const ProgramOptions& program, const Values& values) {
  for (const std::string& warning : values.warnings()) {
    std::fprintf(stderr, "%s: warning: %s\n", std::string(program.name).c_str(), warning.c_str());
  }
}

}  // namespace

CommandLine ReadCommandLine(const ProgramOptions& base, int argc, const char* const* argv,
                            ReadConfig read_config, ReadMore read_more) {
  ProgramOptions program = base;
  if (argc > 0) program.name = ShownName(argv[0], base.name);
  Sources sources;
  for (int i = 1; i < argc; ++i) sources.arguments.emplace_back(argv[i]);
  sources.environment = [](const std::string& name) { return std::getenv(name.c_str()); };
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    sources.variables.emplace_back(text.substr(0, text.find('=')));
  }
  sources.read_config = std::move(read_config);
  sources.read_more = std::move(read_more);
  CommandLine result{Values(program), std::nullopt};
  if (const absl::Status status = ParseInto(sources, result.values); !status.ok()) {
    PrintErrors(result.values, base.name.substr(base.name.rfind('-') + 1), status);
    return {Values(program), kExitUsage};
  }
  std::string text;
  if (result.values.GetBool("help-all")) {
    text = HelpText(program, "all");
  } else if (result.values.HasValue("help")) {
    text = HelpText(program, result.values.GetString("help"));
  } else if (result.values.GetBool("version")) {
    text = std::string(program.name) + " " + std::string(Version()) + "\n";
  } else if (result.values.GetBool("print-config")) {
    text = result.values.Describe();
  } else {
    // A program with a log writes its warnings there, in the log's format.
    if (Find(program, "log-format") == nullptr) PrintWarnings(program, result.values);
    return result;
  }
  PrintWarnings(program, result.values);
  std::fputs(text.c_str(), stdout);
  result.exit_code = kExitOk;
  return result;
}

}  // namespace penstock::options
