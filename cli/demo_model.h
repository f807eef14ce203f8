// The demo model that comes with Penstock.
#pragma once

#include <absl/status/status.h>

#include <optional>
#include <string>

#include "cli/words.h"

namespace penstock::cli {

// Its folder, found from the folder of the programs: in share/ of an installation, or in demo/ of
// the source tree. nullopt: it is not there.
std::optional<std::string> FindDemoModel(const std::string& program_folder);

// Puts options of the launcher in place of MODEL, the first word, or of --demo.
absl::Status TakeModel(Words& words);

}  // namespace penstock::cli
