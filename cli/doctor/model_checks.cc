#include "cli/doctor/model_checks.h"

#include <unistd.h>

#include <boost/json/object.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "common/exit_codes.h"
#include "common/human_bytes.h"
#include "common/json_parse.h"
#include "common/status.h"
#include "launcher/preflight.h"
#include "launcher/read_file.h"
#include "launcher/router_check.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxDepth = 64;
constexpr char kTokenizer[] = "tokenizer.json";
constexpr char kIndex[] = "model.safetensors.index.json";
constexpr char kCorrectIt[] = "correcting what it names";

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// A pointer that Git LFS should have replaced with the contents of the file.
bool IsPointer(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) && line.starts_with("version https://git-lfs");
}

Finding CheckReadable(const std::string& folder) {
  if (::access(folder.c_str(), R_OK | X_OK) != 0) {
    return Bad(folder + " cannot be read: " + std::strerror(errno), "chmod u+rx on the folder");
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string path = entry.path();
    if (::access(path.c_str(), R_OK) == 0) continue;
    return Bad(path + " cannot be read: " + std::strerror(errno),
               errno == ENOENT ? "downloading the model again: the link has no target"
                               : "chmod u+r, or running as the user who owns it");
  }
  return Good("the files of the model can be read");
}

bool HasTemplate(const std::string& folder) {
  if (Exists(folder + "/chat_template.jinja") || Exists(folder + "/chat_template.json"))
    return true;
  const auto text = launcher::ReadFile(folder + "/tokenizer_config.json", "tokenizer_config.json");
  if (!text.ok()) return false;
  const auto config = ParseJson(*text, kMaxDepth);
  return config.ok() && config->is_object() && config->as_object().contains("chat_template");
}

Finding CheckTemplate(const std::string& folder, const std::string& other) {
  if (!other.empty()) return Good("the chat template is that of " + other);
  if (HasTemplate(folder)) return Good("the model has a chat template");
  return Bad(folder + " has no chat template, so /v1/chat/completions is refused",
             "--tokenizer-config-path FILE, a chat model, or /v1/completions");
}

// A download that was cut off leaves a file that ends early.
Finding CheckTokenizer(const std::string& folder) {
  const std::string path = folder + "/" + kTokenizer;
  const auto text = launcher::ReadFile(path, path);
  const absl::Status json = text.ok() ? ParseJson(*text, kMaxDepth).status() : text.status();
  if (json.ok()) return Good("the tokenizer is valid JSON");
  return Bad(text.ok() ? path + " " + Message(json) : Message(json), "downloading the file again");
}

// The weight files that the index names.
Finding CheckWeightFiles(const std::string& folder) {
  std::set<std::string> names;
  if (Exists(folder + "/" + kIndex)) {
    const auto text = launcher::ReadFile(folder + "/" + kIndex, kIndex);
    const auto index = text.ok() ? ParseJson(*text, kMaxDepth) : text.status();
    const auto* map =
        index.ok() && index->is_object() ? index->as_object().if_contains("weight_map") : nullptr;
    if (map == nullptr || !map->is_object()) {
      return Bad(folder + "/" + kIndex + " has no weight_map", "downloading the file again");
    }
    for (const auto& [tensor, name] : map->as_object()) {
      if (name.is_string()) names.emplace(name.as_string().c_str());
    }
  }
  for (const std::string& name : names) {
    if (Exists(folder + "/" + name)) continue;
    return Bad(folder + " lacks the weight file " + name, "downloading the rest of the model");
  }
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() != ".safetensors" || !IsPointer(entry.path())) continue;
    return Bad(entry.path().string() + " is a pointer of Git LFS, not the weights",
               "`git lfs pull` in the folder");
  }
  return Good("the weight files are there");
}

// The error of a shard names an option or a part of the model, or neither.
std::string AdviceFor(const std::string& error) {
  if (error.find("model_type") != error.npos) return "a model type of docs/models.md";
  if (error.starts_with("--")) return kCorrectIt;
  return "`penstock fit`, or downloading the model again";
}

}  // namespace

Findings CheckModelFiles(const std::string& folder, const std::string& other_template) {
  const absl::Status files = launcher::CheckModelFolder(folder, launcher::ModelUse::kWeights);
  if (!files.ok()) {
    return {Bad(Message(files),
                "another folder, or downloading the model again: "
                "penstock serve MODEL --download-only")};
  }
  return {Good("config.json, tokenizer.json and weights are in " + folder), CheckReadable(folder),
          CheckTokenizer(folder), CheckWeightFiles(folder), CheckTemplate(folder, other_template)};
}

Finding CheckModelRuns(const absl::StatusOr<MemoryNeeds>& needs) {
  if (!needs.ok()) {
    const std::string error = Message(needs.status());
    return Bad(error, AdviceFor(error));
  }
  if (!needs->problem.empty()) return Bad(needs->problem, "`penstock fit` for the numbers");
  if (!needs->Fits()) {
    return Bad(
        "the ranks need " + HumanBytes(needs->Fixed()) + " of " + HumanBytes(needs->free) + " free",
        "--quantize int8, a smaller model or a larger machine");
  }
  return Good(needs->model_type + " runs on " + needs->backend + " and needs " +
              HumanBytes(needs->Fixed()) + " of " + HumanBytes(needs->free) + " free");
}

Finding CheckRouterStarts(const options::Values& values, launcher::Machine machine) {
  machine.socket_prefix = "unused";
  auto plan = launcher::MakeLaunchPlan(values, machine);
  if (!plan.ok()) return Bad(Message(plan.status()), kCorrectIt);
  plan->router.arguments.emplace_back("--check-chat");
  const launcher::Problem problem = launcher::CheckRouter(plan->router);
  if (problem.exit_code == kExitModel) {
    return Bad(problem.error, "downloading the model again, or --tokenizer-config-path FILE");
  }
  if (!problem.error.empty()) return Bad(problem.error, kCorrectIt);
  return Good("the router accepts keys, chat template and log files");
}

}  // namespace penstock::cli
