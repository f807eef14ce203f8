#include "tests/unit/support/paths.h"

#include <cstdlib>
#include <filesystem>

namespace penstock::testing_support {

std::string SourcePath(const std::string& relative) {
  const char* given = std::getenv("PENSTOCK_SOURCE_ROOT");
  return std::string(given != nullptr ? given : PENSTOCK_SOURCE_DIR) + "/" + relative;
}

std::string ModelCheckpoints() {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return (program.parent_path() / "model_checkpoints").string();
}

std::string SharedData(const std::string& relative) {
  const char* given = std::getenv("PENSTOCK_SHARED_DATA");
  const std::filesystem::path root = given != nullptr ? given : SourcePath("../shared/data");
  const std::filesystem::path path = root / relative;
  return std::filesystem::exists(path) ? path.string() : "";
}

}  // namespace penstock::testing_support
