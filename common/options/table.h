// The options table of all programs, and what is derived from it: names, help and documentation.
// Thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/options/profile.h"
#include "common/options/spec.h"

namespace penstock::options {

// A program and the rows that it takes. `rows` outlives the ProgramOptions.
struct ProgramOptions {
  std::string_view name;     // "penstock-router"
  std::string_view summary;  // one sentence
  Components component = kTool;
  std::vector<const OptionSpec*> options;
  const Profile* profile = nullptr;  // of the name that started it; null: none
};

// Every row, in the order of the documentation.
const std::vector<OptionSpec>& Table();

// penstock-launcher, -router, -shard or -simshard; `component` is exactly one of their bits.
ProgramOptions ProgramFor(Components component);

// Like ProgramFor, with the profile that argv[0] selects. Its folder is ignored.
ProgramOptions ProgramAs(Components component, std::string_view started_as);

// The name of a program in its help and errors: "penstock serve" if `penstock` started it under
// that name (argv[0]), else `name`.
std::string_view ShownName(std::string_view started_as, std::string_view name);

// A tool. Its options are `rows`, --help, --version and --print-config.
ProgramOptions ProgramWith(std::string_view name, std::string_view summary,
                           std::span<const OptionSpec> rows);

// The row of that name or alias, with underscores or hyphens; null if there is none.
const OptionSpec* Find(const ProgramOptions& program, std::string_view name);

// Whether --help leaves options out, which --help-all shows.
bool HidesOptions(const ProgramOptions& program);
const OptionSpec* FindShort(const ProgramOptions& program, char short_name);

inline constexpr std::string_view kVariablePrefix = "PENSTOCK_";
std::string EnvironmentName(const OptionSpec& spec);  // PENSTOCK_MAX_STEP_TOKENS
// That of the option's name and those of its other names.
std::vector<std::string> EnvironmentNames(const OptionSpec& spec);
std::string YamlKey(const OptionSpec& spec);  // max_step_tokens

// Whether every value but the default is refused or without effect.
bool DoesNothing(const OptionSpec& spec);

// The accepted values "a|b|c" of an option that has few: an enum, or a text of which the others are
// refused. Else empty.
std::string_view ChoicesOf(const OptionSpec& spec);

// Describes the accepted values: "an integer from 0 to 65535", "chunked or whole".
std::string DescribeAccepted(const OptionSpec& spec);

// Whether the items of a list option are integers.
bool HoldsIntegers(const OptionSpec& spec);

// The option of `program` whose name is nearest to `name`; empty if none is near.
std::string_view Nearest(const ProgramOptions& program, std::string_view name);

// `which`: empty for the common options, "all", or a group's name or a part of it. Only the
// launcher has options that are not common.
std::string HelpText(const ProgramOptions& program, std::string_view which);

// docs/api/options.md.
std::string MarkdownPage();

}  // namespace penstock::options
