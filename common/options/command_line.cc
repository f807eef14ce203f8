#include <cstdio>
#include <cstdlib>
#include <utility>

#include "common/exit_codes.h"
#include "common/options/values.h"
#include "common/version.h"

namespace penstock::options {
namespace {

void PrintErrors(const ProgramOptions& program, std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    std::fprintf(stderr, "%s: error: %s\n", std::string(program.name).c_str(),
                 std::string(line).c_str());
  }
}

void PrintWarnings(const ProgramOptions& program, const Values& values) {
  for (const std::string& warning : values.warnings()) {
    std::fprintf(stderr, "%s: warning: %s\n", std::string(program.name).c_str(), warning.c_str());
  }
}

}  // namespace

CommandLine ReadCommandLine(const ProgramOptions& program, int argc, const char* const* argv,
                            ReadConfig read_config, ReadMore read_more) {
  Sources sources;
  for (int i = 1; i < argc; ++i) sources.arguments.emplace_back(argv[i]);
  sources.environment = [](const std::string& name) { return std::getenv(name.c_str()); };
  sources.read_config = std::move(read_config);
  sources.read_more = std::move(read_more);
  absl::StatusOr<Values> values = Parse(program, sources);
  if (!values.ok()) {
    PrintErrors(program, {values.status().message().data(), values.status().message().size()});
    return {Values(program), kExitUsage};
  }
  CommandLine result{*std::move(values), std::nullopt};
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
