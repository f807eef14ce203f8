#include "cli/demo_model.h"

#include <filesystem>
#include <system_error>

namespace penstock::cli {

std::optional<std::string> FindDemoModel(const std::string& program_folder) {
  for (const char* place : {"../share/penstock/demo-model", "../../demo/model"}) {
    const std::filesystem::path folder =
        (std::filesystem::path(program_folder) / place).lexically_normal();
    std::error_code ignored;
    if (std::filesystem::exists(folder / "config.json", ignored)) return folder.string();
  }
  return std::nullopt;
}

}  // namespace penstock::cli
