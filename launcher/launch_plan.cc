#include "launcher/launch_plan.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/bad_option.h"
#include "common/json_text.h"
#include "common/socket_names.h"
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
  if (amount.share > 0) return NumberText(100 * amount.share / static_cast<double>(ranks)) + "%";
  return std::to_string(amount.bytes / ranks);
}

// Ranks that divide the machine's memory, or that of one GPU.
std::int64_t RanksPerMemory(const Values& values, const Machine& machine, std::int64_t ranks) {
  if (!UsesGpus(values, machine)) return ranks;
  const auto gpus = std::max<std::int64_t>(1, static_cast<std::int64_t>(machine.gpus.size()));
  return (ranks + gpus - 1) / gpus;
}

// Values of one rank.
absl::StatusOr<Values> DivideAmongRanks(const Values& values, const Machine& machine,
                                        std::int64_t ranks) {
  Values divided = values;
  const std::int64_t threads = values.FindInt("cpu-threads").value_or(machine.cores);
  absl::Status status =
      divided.Set("cpu-threads", std::to_string(std::max<std::int64_t>(1, threads / ranks)));
  const std::optional<MemoryAmount> memory = values.FindMemory("kv-cache-memory");
  const std::int64_t sharers = RanksPerMemory(values, machine, ranks);
  if (status.ok() && memory.has_value()) {
    status = divided.Set("kv-cache-memory", DivideMemory(*memory, sharers));
  }
  if (status.ok()) return divided;
  return WithContext(status, "--kv-cache-memory " + values.TextOf("kv-cache-memory") +
                                 ": divided among " + std::to_string(sharers) +
                                 " ranks, each part");
}

// The numbers of one shard.
struct Place {
  std::optional<std::int64_t> group;  // with several groups
  int rank = 0;
  std::int64_t ranks = 1;    // of its group
  std::int64_t on_host = 1;  // of all groups
};

const char* ShardProgram(const Values& values, const Machine& machine) {
  if (UsesGpus(values, machine)) return "penstock-shard-cuda";
  return NeedsTorch(values, machine) ? "penstock-shard-torch" : "penstock-shard";
}

ChildSpec ShardSpec(const Values& divided, const Machine& machine, const Place& place) {
  const bool simulated = UsesSimulatedShards(divided);
  ChildSpec spec;
  spec.name = ShardName(place.group, place.rank);
  spec.rank = place.rank;
  spec.group = static_cast<int>(place.group.value_or(0));
  spec.program = ProgramPath(divided, "shard-program", machine, ShardProgram(divided, machine));
  spec.arguments = divided.ToArgv(simulated ? options::kSimshard : options::kShard);
  if (place.group) spec.arguments.push_back(Option("group", std::to_string(*place.group)));
  spec.arguments.push_back(Option("rank", std::to_string(place.rank)));
  spec.arguments.push_back(Option("world-size", std::to_string(place.ranks)));
  if (!simulated) spec.arguments.push_back(Option("local-ranks", std::to_string(place.on_host)));
  spec.arguments.push_back(Option("shard-uds-path", machine.socket_prefix));
  // Makes libtorch's worker threads sleep at barriers. By default they spin, which takes cores from
  // the threads that they wait for when the machine is busy.
  spec.environment.push_back("OMP_WAIT_POLICY=passive");
  return spec;
}

absl::Status AssignGpus(const Values& values, const Machine& machine,
                        std::vector<ChildSpec>& shards) {
  if (!UsesGpus(values, machine)) return absl::OkStatus();
  const std::size_t gpus = machine.gpus.size();
  const bool may_share = gpus > 0 && values.GetBool("share-gpus");
  if (gpus < shards.size() && !may_share) {
    return BadOption("num-replicas times --num-shard", std::to_string(shards.size()),
                     "at most " + std::to_string(gpus) +
                         ", the number of usable GPUs; --share-gpus lets ranks share one");
  }
  for (std::size_t i = 0; i < shards.size(); ++i) {
    shards[i].environment.push_back("CUDA_VISIBLE_DEVICES=" + machine.gpus[i % gpus]);
  }
  return absl::OkStatus();
}

}  // namespace

bool UsesSimulatedShards(const Values& values) {
  const std::filesystem::path program = values.GetString("shard-program");
  return program.filename() == "penstock-simshard";
}

bool UsesTransformers(const Values& values) {
  return values.GetString("engine") == "transformers" && !UsesSimulatedShards(values);
}

bool UsesGpus(const Values& values, const Machine& machine) {
  const std::string& device = values.GetString("device");
  if (UsesSimulatedShards(values) || UsesTransformers(values)) return false;
  if (device != "auto") return device == "cuda";
  if (values.GetString("backend") == "cpu" || !machine.cuda_shard) return false;
  // A custom --shard-program reports its own model.
  if (!values.GetString("shard-program").empty()) return false;
  const std::int64_t ranks = values.GetInt("num-replicas") * values.GetInt("num-shard");
  return std::cmp_less_equal(ranks, machine.gpus.size());
}

bool NeedsTorch(const Values& values, const Machine& machine) {
  if (UsesSimulatedShards(values) || UsesTransformers(values)) return false;
  if (UsesGpus(values, machine)) return false;
  if (!values.GetString("shard-program").empty()) return false;
  const std::string& backend = values.GetString("backend");
  if (backend != "auto") return backend == "reference";
  return values.GetString("dtype") == "float16" || !machine.has_kernels;
}

absl::StatusOr<LaunchPlan> MakeLaunchPlan(const Values& values, const Machine& machine) {
  LaunchPlan plan;
  const std::int64_t groups = values.GetInt("num-replicas");
  Place place;
  place.ranks = values.GetInt("num-shard");
  place.on_host = groups * place.ranks;
  PENSTOCK_ASSIGN_OR_RETURN(const Values divided, DivideAmongRanks(values, machine, place.on_host));
  for (std::int64_t group = 0; group < groups; ++group) {
    if (groups > 1) place.group = group;
    for (place.rank = 0; place.rank < place.ranks; ++place.rank) {
      plan.shards.push_back(ShardSpec(divided, machine, place));
    }
  }
  PENSTOCK_RETURN_IF_ERROR(AssignGpus(values, machine, plan.shards));
  plan.router.name = "router";
  plan.router.program = ProgramPath(values, "router-program", machine, "penstock-router");
  plan.router.arguments = values.ToArgv(options::kRouter);
  plan.router.arguments.push_back(Option("shard-uds-path", machine.socket_prefix));
  plan.router.environment = values.ToEnvironment(options::kRouter);
  plan.router.takes_hangup =
      !values.GetString("api-keys-file").empty() || !values.GetString("tls-cert").empty();
  return plan;
}

}  // namespace penstock::launcher
