#include "cli/demo_model.h"

#include <filesystem>
#include <system_error>

#include "launcher/machine.h"

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

absl::Status TakeModel(Words& words) {
  if (TakeSwitch(words, "demo")) {
    const auto programs = launcher::ProgramFolder();
    const auto demo = programs.ok() ? FindDemoModel(*programs) : std::nullopt;
    if (!demo) {
      return absl::NotFoundError("--demo: the demo model is not installed beside the programs");
    }
    words.insert(words.begin(), {"--model-id", *demo, "--served-model-name", "demo"});
  } else if (const auto model = TakeFirst(words)) {
    words.insert(words.begin(), {"--model-id", *model});
  }
  return absl::OkStatus();
}

}  // namespace penstock::cli
