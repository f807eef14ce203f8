#include "tests/unit/support/paths.h"

#include <cstdlib>
#include <filesystem>

namespace penstock::testing_support {

std::string SourcePath(const std::string& relative) {
  const char* given = std::getenv("PENSTOCK_SOURCE_ROOT");
  return std::string(given != nullptr ? given : PENSTOCK_SOURCE_DIR) + "/" + relative;
}

std::string SharedData(const std::string& relative) {
  const char* given = std::getenv("PENSTOCK_SHARED_DATA");
  const std::filesystem::path root = given != nullptr ? given : SourcePath("../shared/data");
  const std::filesystem::path path = root / relative;
  return std::filesystem::exists(path) ? path.string() : "";
}

}  // namespace penstock::testing_support
