// The demo model that comes with Penstock.
#pragma once

#include <optional>
#include <string>

namespace penstock::cli {

// Its folder, found from the folder of the programs: in share/ of an installation, or in demo/ of
// the source tree. nullopt: it is not there.
std::optional<std::string> FindDemoModel(const std::string& program_folder);

}  // namespace penstock::cli
