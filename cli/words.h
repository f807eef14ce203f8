// The words of a command line, before the options table reads them.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/options/values.h"

namespace penstock::cli {

using Words = std::vector<std::string>;

// Takes the first word out if it is no option: "MODEL" of `penstock fit MODEL --num-shard 2`.
std::optional<std::string> TakeFirst(Words& words);

// Takes the switch out of the words. Whether it was there.
bool TakeSwitch(Words& words, std::string_view name);

// Whether the words ask for help.
bool AsksForHelp(const Words& words);

// The values that the options of a command have, from the words and the environment. With an exit
// code, help or errors were printed.
options::CommandLine ReadWords(const options::ProgramOptions& program, const Words& words);

// Parses `words` with the launcher's option table into `values`.
absl::Status ReadLauncherWords(const Words& words, options::Values& values);

}  // namespace penstock::cli
