// The values of one program's options, and their parser. A value is looked for in this order: the
// command line, the environment, a configuration file, the default.
//
//   auto cli = options::ReadCommandLine(program, argc, argv);
//   if (cli.exit_code.has_value()) return *cli.exit_code;
//   int port = cli.values.GetInt("port");
//
// After parsing, any thread may read a Values object. A getter aborts if the program has no option
// of that name and type.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/options/table.h"
#include "common/options/value.h"

namespace penstock::options {

enum class Source { kDefault, kProfile, kConfigFile, kEnvironment, kCommandLine, kProgram };

std::string_view SourceName(Source source);  // "default", "config file", "environment", ...

class Values {
 public:
  explicit Values(ProgramOptions program);

  // The value; the option must have one (a default, or `required`).
  std::int64_t GetInt(std::string_view name) const;
  double GetDouble(std::string_view name) const;
  bool GetBool(std::string_view name) const;
  std::int64_t GetBytes(std::string_view name) const;
  std::chrono::nanoseconds GetDuration(std::string_view name) const;

  // kString, kPath, kModel and kEnum; empty when unset. A list is empty when unset.
  const std::string& GetString(std::string_view name) const;
  const std::vector<std::string>& GetList(std::string_view name) const;

  // nullopt if the option is unset or "auto".
  std::optional<std::int64_t> FindInt(std::string_view name) const;
  std::optional<MemoryAmount> FindMemory(std::string_view name) const;

  bool IsSet(std::string_view name) const;  // not by the default or the profile
  bool HasValue(std::string_view name) const;
  Source SourceOf(std::string_view name) const;
  const std::string& WhereOf(std::string_view name) const;  // as --print-config shows it

  // The text as on a command line; empty if unset.
  const std::string& TextOf(std::string_view name) const;

  // Sets a value that the program computed.
  absl::Status Set(std::string_view name, std::string_view text, Source source = Source::kProgram,
                   std::string_view where = {});

  // The arguments that give `component` the same values. They contain set values, which override
  // the environment, but neither defaults nor secrets. Every user can read a command line, so
  // ToEnvironment passes the secrets.
  std::vector<std::string> ToArgv(Components component) const;
  // The secrets of `component`, as NAME=value.
  std::vector<std::string> ToEnvironment(Components component) const;

  // One line per option: name, value, source and place (--print-config). Those that are not by
  // default and those that are missing come first, then an empty line.
  std::string Describe() const;

  const ProgramOptions& program() const { return program_; }

  // Warnings of the parser, one line each.
  const std::vector<std::string>& warnings() const { return warnings_; }
  void AddWarning(std::string line) { warnings_.push_back(std::move(line)); }

 private:
  struct Entry {
    const OptionSpec* spec = nullptr;
    Parsed value;
    std::string text;
    Source source = Source::kDefault;
    std::string where;  // "PENSTOCK_PORT", "server.yaml:3"; empty for a default
  };

  const Entry& At(std::string_view name) const;
  bool IsMissing(const OptionSpec& spec) const;
  std::string DescribeOne(const OptionSpec& spec) const;
  template <typename T>
  const T& As(std::string_view name) const;

  ProgramOptions program_;
  std::map<std::string, Entry, std::less<>> entries_;  // by canonical name
  std::vector<std::string> warnings_;
};

// One `name: value` of a configuration file, or a setting that ReadMore found elsewhere. A list has
// several values.
struct ConfigEntry {
  std::string key;
  std::vector<std::string> values;
  std::string where;  // "server.yaml:3"
  Source source = Source::kConfigFile;
};

using ReadConfig = std::function<absl::StatusOr<std::vector<ConfigEntry>>(const std::string& path)>;

// Further entries, which override --config but not the environment. `text_of` returns an option's
// text on the command line or in the environment; empty if neither sets it.
using ReadMore = std::function<absl::StatusOr<std::vector<ConfigEntry>>(
    const std::function<std::string(std::string_view name)>& text_of)>;

struct Sources {
  std::vector<std::string> arguments;  // without the program's name
  std::function<const char*(const std::string& name)> environment = {};  // null: no environment
  // The names in `environment`. An unknown name with our prefix is an error.
  std::vector<std::string> variables = {};
  ReadConfig read_config = {};  // for --config, if the program has it
  ReadMore read_more = {};
};

// Returns the values, or InvalidArgument with one line for each error, with option, value and
// limit.
// --help and --version suppress other errors.
absl::StatusOr<Values> Parse(const ProgramOptions& program, const Sources& sources);

// The same. After an error `values` holds every value that could be read.
absl::Status ParseInto(const Sources& sources, Values& values);

struct CommandLine {
  Values values;
  std::optional<int> exit_code;  // set: print nothing more and return it from main
};

// Parses with the environment of the process. Prints help, version and configuration to stdout, and
// warnings and errors to stderr, as log records with --log-format json. ConfigureLog (log_setup.h)
// logs the warnings of programs with --log-format.
CommandLine ReadCommandLine(const ProgramOptions& program, int argc, const char* const* argv,
                            ReadConfig read_config = {}, ReadMore read_more = {});

// Checks rules between options ("max-input-tokens must be below max-total-tokens"). One line for
// each broken rule.
std::vector<std::string> CheckTogether(const Values& values);

}  // namespace penstock::options
