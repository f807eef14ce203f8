#include "cli/fit.h"

#include <absl/strings/str_split.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cli/commands.h"
#include "cli/demo_model.h"
#include "cli/model_folder.h"
#include "common/exit_codes.h"
#include "common/human_bytes.h"
#include "common/status.h"
#include "launcher/model_source.h"
#include "launcher/preflight.h"
#include "launcher/shard_output.h"

namespace penstock::cli {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

std::string Row(const std::string& name, const std::string& value) {
  return "  " + name + std::string(std::max<std::size_t>(1, 22 - name.size()), ' ') + value + "\n";
}

std::string CacheRows(const MemoryNeeds& needs) {
  std::string text;
  if (needs.kv_per_token > 0) text += Row("K/V per token", HumanBytes(needs.kv_per_token));
  if (needs.window_kv_per_sequence > 0) {
    text += Row("K/V of windows", HumanBytes(needs.window_kv_per_sequence) +
                                      " per request at most (window of " +
                                      std::to_string(needs.window) + ")");
  }
  if (needs.state_per_sequence > 0) {
    text += Row("states", HumanBytes(needs.state_per_sequence) + " per request");
  }
  return text;
}

// How many requests of some lengths the bytes hold.
std::string RequestRows(const MemoryNeeds& needs, std::uint64_t bytes) {
  std::string text;
  std::vector<std::uint64_t> lengths;
  for (const std::uint64_t length : {1024, 8192}) {
    if (length < needs.max_position) lengths.push_back(length);
  }
  lengths.push_back(needs.max_position);
  for (const std::uint64_t length : lengths) {
    const std::uint64_t each = needs.RequestBytes(length);
    if (each == 0) continue;
    text += Row("requests of " + std::to_string(length), std::to_string(bytes / each));
  }
  return text;
}

std::string ShownName(const options::Values& values, const std::string& model) {
  if (values.HasValue("served-model-name")) return values.GetString("served-model-name");
  return launcher::NameOfFolder(model).value_or(model);
}

int FailFit(const absl::Status& status, int code) {
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    std::fprintf(stderr, "penstock fit: error: %s\n", std::string(line).c_str());
  }
  return code;
}

int Report(const options::Values& values, const std::string& model) {
  const auto machine = launcher::FindMachine();
  if (!machine.ok()) return FailFit(machine.status(), kExitFailure);
  auto needs = AskMemoryNeeds(values, *machine);
  if (!needs.ok()) {
    // These errors name the option; the shard knows the folder only.
    const absl::Status folder =
        launcher::CheckModelFolder(values.GetString("model-id"), launcher::ModelUse::kWeights);
    return FailFit(folder.ok() ? needs.status() : folder, kExitModel);
  }
  if (values.HasValue("memory")) {
    needs->free = static_cast<std::uint64_t>(values.GetBytes("memory"));
    needs->limit = "--memory";
    needs->problem.clear();
  }
  std::fputs(FitText(model, *needs).c_str(), stdout);
  return needs->Fits() ? kExitOk : kExitMemory;
}

}  // namespace

std::string FitText(const std::string& model, const MemoryNeeds& needs) {
  std::string text = model + ": " + needs.model_type + ", " + needs.dtype +
                     (needs.backend.empty() ? "" : ", " + needs.backend) +
                     (needs.ranks > 1 ? ", " + std::to_string(needs.ranks) + " ranks" : "") + "\n";
  text += Row("weights", HumanBytes(needs.weights));
  text += Row("scratch", HumanBytes(needs.scratch));
  text += CacheRows(needs);
  text += Row("free memory",
              HumanBytes(needs.free) + (needs.limit.empty() ? "" : " (" + needs.limit + ")"));
  if (!needs.Fits()) {
    text += needs.problem.empty()
                ? "It does not fit: " + HumanBytes(needs.Fixed() - needs.free) +
                      " are missing; free memory, or take --quantize int8 or a smaller model\n"
                : "It does not fit: " + needs.problem + "\n";
    return text;
  }
  text += Row("left for the KV cache", HumanBytes(needs.Left()));
  // A tenth stays free for the rest of the machine.
  const std::uint64_t cache = needs.Left() / 10 * 9 / kMiB * kMiB;
  if (needs.RequestBytes(1) == 0 || cache == 0) return text;
  text += "With --kv-cache-memory " + std::to_string(cache / kMiB) + "MiB:\n";
  if (needs.kv_per_token > 0) text += Row("tokens", std::to_string(cache / needs.kv_per_token));
  return text + RequestRows(needs, cache);
}

int Fit(Words words) {
  absl::Status read = TakeModel(words);
  options::Values values(LauncherAnd("fit"));
  if (read.ok()) read = ReadLauncherWords(words, values);
  if (!read.ok()) return FailFit(read, kExitUsage);
  const std::string model = values.GetString("model-id");
  const auto folder = FindModelFolder(values, model);
  if (!folder.ok()) return FailFit(folder.status(), kExitModel);
  const absl::Status set = values.Set("model-id", *folder);
  return set.ok() ? Report(values, ShownName(values, model)) : FailFit(set, kExitUsage);
}

}  // namespace penstock::cli
