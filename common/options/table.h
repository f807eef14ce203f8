// The options table of the whole project, and what follows from it without any value: names, help
// and documentation. All of it is immutable after the first call, from any thread.
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
  const Profile* profile = nullptr;  // of the name that it was started by; null: its own
};

// Every row, in the order of the documentation.
const std::vector<OptionSpec>& Table();

// penstock-launcher, -router, -shard or -simshard; `component` is exactly one of their bits.
ProgramOptions ProgramFor(Components component);

// The same under the name that it was started by (argv[0], with or without a folder): the profile
// of that name, if there is one.
ProgramOptions ProgramAs(Components component, std::string_view started_as);

// A program with its own rows (a tool): `rows` plus --help, --version and --print-config.
ProgramOptions ProgramWith(std::string_view name, std::string_view summary,
                           std::span<const OptionSpec> rows);

// The row of that name or alias, with underscores or hyphens; null if there is none.
const OptionSpec* Find(const ProgramOptions& program, std::string_view name);
const OptionSpec* FindShort(const ProgramOptions& program, char short_name);

std::string EnvironmentName(const OptionSpec& spec);  // PENSTOCK_MAX_STEP_TOKENS
std::string YamlKey(const OptionSpec& spec);          // max_step_tokens

// What the option accepts, in words: "an integer from 0 to 65535", "chunked or whole".
std::string DescribeAccepted(const OptionSpec& spec);

// Of a list: whether each item is an integer within the row's limits.
bool HoldsIntegers(const OptionSpec& spec);

// Levenshtein's distance.
std::size_t EditDistance(std::string_view a, std::string_view b);

// The option of `program` whose name is nearest to `name`; empty if none is near.
std::string_view Nearest(const ProgramOptions& program, std::string_view name);

// `which`: empty for the common options, "all", or (part of) a group's name.
std::string HelpText(const ProgramOptions& program, std::string_view which);

// docs/api/options.md.
std::string MarkdownPage();

}  // namespace penstock::options
