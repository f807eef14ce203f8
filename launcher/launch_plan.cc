#include "launcher/launch_plan.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace penstock::launcher {
namespace {

using options::MemoryAmount;
using options::Values;

std::string Option(std::string_view name, const std::string& text) {
  return "--" + std::string(name) + "=" + text;
}

std::string ProgramPath(const Values& values, std::string_view option, const Machine& machine,
                        std::string_view fallback) {
  const std::string& given = values.GetString(option);
  return given.empty() ? machine.program_dir + "/" + std::string(fallback) : given;
}

std::string DivideMemory(const MemoryAmount& amount, std::int64_t ranks) {
  if (amount.share > 0) return absl::StrCat(100 * amount.share / static_cast<double>(ranks), "%");
  return std::to_string(amount.bytes / ranks);
}

// Values of one rank.
absl::StatusOr<Values> DivideAmongRanks(const Values& values, const Machine& machine,
                                        std::int64_t ranks) {
  Values divided = values;
  const std::int64_t threads = values.FindInt("cpu-threads").value_or(machine.cores);
  absl::Status status =
      divided.Set("cpu-threads", std::to_string(std::max<std::int64_t>(1, threads / ranks)));
  const std::optional<MemoryAmount> memory = values.FindMemory("kv-cache-memory");
  if (status.ok() && memory.has_value()) {
    status = divided.Set("kv-cache-memory", DivideMemory(*memory, ranks));
  }
  if (status.ok()) return divided;
  return WithContext(status, "--kv-cache-memory " + values.TextOf("kv-cache-memory") +
                                 ": divided among " + std::to_string(ranks) + " ranks, each part");
}

ChildSpec ShardSpec(const Values& divided, const Machine& machine, std::int64_t ranks, int rank) {
  const bool simulated = UsesSimulatedShards(divided);
  ChildSpec spec;
  spec.name = "shard-" + std::to_string(rank);
  spec.rank = rank;
  spec.program = ProgramPath(divided, "shard-program", machine, "penstock-shard");
  spec.arguments = divided.ToArgv(simulated ? options::kSimshard : options::kShard);
  spec.arguments.push_back(Option("rank", std::to_string(rank)));
  spec.arguments.push_back(Option("world-size", std::to_string(ranks)));
  if (!simulated) spec.arguments.push_back(Option("local-ranks", std::to_string(ranks)));
  spec.arguments.push_back(Option("shard-uds-path", machine.socket_prefix));
  // libtorch's worker threads sleep at their barriers. By default they spin, and take the cores
  // from those whom they wait for as soon as the machine has anything else to do.
  spec.environment.push_back("OMP_WAIT_POLICY=passive");
  return spec;
}

}  // namespace

bool UsesSimulatedShards(const Values& values) {
  const std::filesystem::path program = values.GetString("shard-program");
  return program.filename() == "penstock-simshard";
}

absl::StatusOr<LaunchPlan> MakeLaunchPlan(const Values& values, const Machine& machine) {
  LaunchPlan plan;
  const std::int64_t ranks = values.GetInt("num-shard");
  PENSTOCK_ASSIGN_OR_RETURN(const Values divided, DivideAmongRanks(values, machine, ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    plan.shards.push_back(ShardSpec(divided, machine, ranks, rank));
  }
  plan.router.name = "router";
  plan.router.program = ProgramPath(values, "router-program", machine, "penstock-router");
  plan.router.arguments = values.ToArgv(options::kRouter);
  plan.router.arguments.push_back(Option("shard-uds-path", machine.socket_prefix));
  return plan;
}

}  // namespace penstock::launcher
