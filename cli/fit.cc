#include "cli/fit.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "cli/model_folder.h"
#include "common/exit_codes.h"
#include "common/human_bytes.h"
#include "common/options/table.h"
#include "common/options/value.h"
#include "common/status.h"
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

// --memory in place of what is free.
absl::Status Pretend(const std::string& memory, MemoryNeeds& needs) {
  const options::OptionSpec spec("memory", options::Bytes(1), "", "");
  const auto parsed = options::ParseValue(spec, memory);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError("--memory " + memory + ": " + Message(parsed.status()));
  }
  needs.free = static_cast<std::uint64_t>(std::get<std::int64_t>(*parsed));
  needs.limit = "--memory";
  needs.problem.clear();
  return absl::OkStatus();
}

int Fail(const absl::Status& status, int code) {
  std::fprintf(stderr, "penstock fit: error: %s\n", Message(status).c_str());
  return code;
}

int Report(const options::Values& values, const std::string& model, const std::string& memory) {
  const auto machine = launcher::FindMachine();
  if (!machine.ok()) return Fail(machine.status(), kExitFailure);
  auto needs = AskMemoryNeeds(values, *machine);
  if (!needs.ok()) return Fail(needs.status(), kExitModel);
  if (!memory.empty()) {
    const absl::Status pretended = Pretend(memory, *needs);
    if (!pretended.ok()) return Fail(pretended, kExitUsage);
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
  const std::optional<std::string> first = TakeFirst(words);
  const std::string memory = TakeValue(words, "memory");
  if (first) words.insert(words.begin(), "--model-id=" + *first);
  options::Values values(options::ProgramFor(options::kLauncher));
  const absl::Status read = ReadLauncherWords(words, values);
  if (!read.ok()) return Fail(read, kExitUsage);
  const std::string model = values.GetString("model-id");
  const auto folder = FindModelFolder(values, model);
  if (!folder.ok()) return Fail(folder.status(), kExitModel);
  const absl::Status set = values.Set("model-id", *folder);
  return set.ok() ? Report(values, model, memory) : Fail(set, kExitUsage);
}

}  // namespace penstock::cli
