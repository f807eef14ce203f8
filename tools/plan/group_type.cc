#include "tools/plan/group_type.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "common/status.h"
#include "scheduler/cost/machine_model.h"
#include "sim/fleet/warm_up_table.h"
#include "tools/plan/step_table.h"

namespace penstock::plan {
namespace {

using scheduler::MachineModel;
using scheduler::StepShape;

constexpr std::uint32_t kBlockTokens = 16;
constexpr std::uint32_t kMostGroupsOfLauncher = 64;
// What a serving process takes beside weights and cache: 10 % and 3.5 GB.
constexpr double kUsableMemory = 0.9;
constexpr double kOtherBytes = 3.5e9;

double MemoryOf(const MachineType& machine) {
  if (machine.memory > 0 || machine.model.empty()) return machine.memory;
  return machine.model == "h200" ? 141e9 : 80e9;
}

// Bytes of a rank for K and V; 0 or less: the model does not fit. nullopt: not known.
std::optional<double> KvBytes(const PlanModel& model, const MachineType& machine, int ranks) {
  if (machine.kv_memory > 0) return machine.kv_memory;
  const double memory = MemoryOf(machine);
  if (memory == 0) return std::nullopt;
  return kUsableMemory * memory - kOtherBytes - model.WeightBytes(machine.fp8) / ranks;
}

GroupCapacity CapacityOf(const PlanModel& model, int ranks, double kv_bytes, std::uint32_t slots) {
  GroupCapacity capacity;
  const double blocks = kv_bytes / (model.KvBytesPerToken(ranks) * kBlockTokens);
  capacity.blocks = static_cast<std::uint32_t>(std::clamp(blocks, 0.0, 16777216.0));
  capacity.block_size = kBlockTokens;
  capacity.slots = slots;
  capacity.max_sequence_length =
      std::min<std::uint32_t>(model.max_position, capacity.blocks * kBlockTokens);
  return capacity;
}

void UseNamedMachine(const PlanModel& model, GroupType& group) {
  const MachineType& machine = *group.machine;
  std::optional<MachineModel> times;
  if (!model.folder) {
    group.source =
        absl::StrCat(machine.model, "-", model.name, "-tp", group.ranks, machine.fp8 ? "-fp8" : "");
    times = MachineModel::Find(group.source);
  }
  if (!times) {
    group.source = absl::StrCat(machine.model, ", roofline", machine.fp8 ? ", fp8" : "");
    times = MachineModel::Generic(machine.model, model.shape, group.ranks, machine.fp8);
  }
  group.step_time = [times = *times](const StepShape& step) { return times.StepTime(step); };
}

// The table of fewer ranks, divided among more. Every layer has two all-reduces (decision 0066).
sim::StepTime Divide(const StepTable& table, int from, int to, const PlanModel& model,
                     const Interconnect& link) {
  const double share = static_cast<double>(from) / to;
  const double sent = 2.0 * (to - 1) / to;  // of a message, by each rank of a ring
  const double bytes = model.shape.hidden * 2 * sent;
  const double sums = 2 * model.shape.layers;
  const double fixed = sums * static_cast<double>(link.latency.count());
  const double each = sums * bytes / link.bytes_per_second * 1e9;
  return [=, time = table.step_time](const StepShape& step) {
    const auto whole = static_cast<double>(time(step).count());
    const auto tokens = static_cast<double>(step.Tokens());
    return Duration(std::llround(whole * share + fixed + each * tokens));
  };
}

// False, with the reason: there is no table for this number of ranks.
absl::StatusOr<bool> UseTables(const PlanModel& model, GroupType& group, std::string& why,
                               std::optional<GroupCapacity>& measured) {
  const MachineType& machine = *group.machine;
  auto at = machine.tables.upper_bound(group.ranks);
  if (at == machine.tables.begin() ||
      (std::prev(at)->first != group.ranks && !machine.interconnect)) {
    why = "no table for this number of ranks";
    return false;
  }
  --at;
  PENSTOCK_ASSIGN_OR_RETURN(StepTable table, ReadStepTable(at->second));
  group.source = at->second;
  if (at->first == group.ranks) {
    group.step_time = std::move(table.step_time);
    group.warm_up = std::move(table.warm_up);
    measured = table.capacity;
    return true;
  }
  group.step_time = Divide(table, at->first, group.ranks, model, *machine.interconnect);
  absl::StrAppend(&group.source, ", divided by ", group.ranks / at->first);
  return true;
}

// Sets `why` if the group is not possible.
absl::Status Fill(const PlanModel& model, std::uint32_t slots, GroupType& group, std::string& why) {
  const MachineType& machine = *group.machine;
  if (!model.Divides(group.ranks)) {
    why = "the heads of the model cannot be divided";
  } else if (static_cast<std::uint32_t>(group.ranks) > std::min(machine.count, machine.per_host)) {
    why = "a host has fewer";
  }
  if (!why.empty()) return absl::OkStatus();
  std::optional<GroupCapacity> measured;
  if (machine.model.empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool used, UseTables(model, group, why, measured));
    if (!used) return absl::OkStatus();
  } else {
    UseNamedMachine(model, group);
  }
  const auto bytes = KvBytes(model, machine, group.ranks);
  if (measured && machine.kv_memory == 0) {
    group.capacity = *measured;
    group.capacity.slots = slots;
  } else if (!bytes) {
    return absl::InvalidArgumentError(machine.where + ": " + machine.name +
                                      " must have `kv_memory` or `memory`: a warm-up table does "
                                      "not say how much the KV cache holds");
  } else {
    group.capacity = CapacityOf(model, group.ranks, *bytes, slots);
    if (group.capacity.blocks == 0) why = "the weights leave no memory for the KV cache";
  }
  if (group.warm_up.samples.empty()) group.warm_up = sim::WarmUpTable(group.step_time);
  return absl::OkStatus();
}

}  // namespace

std::uint32_t GroupType::MostGroups() const {
  const auto size = static_cast<std::uint32_t>(ranks);
  const std::uint32_t hosts = machine->count / machine->per_host;
  const std::uint32_t rest = machine->count % machine->per_host;
  return std::min(hosts * (machine->per_host / size) + rest / size, kMostGroupsOfLauncher);
}

absl::StatusOr<GroupTypes> MakeGroupTypes(const PlanModel& model,
                                          const std::vector<MachineType>& machines,
                                          const std::vector<int>& ranks, std::uint32_t slots) {
  GroupTypes made;
  for (const MachineType& machine : machines) {
    for (const int count : ranks) {
      GroupType group{&machine, count};
      std::string why;
      PENSTOCK_RETURN_IF_ERROR(Fill(model, slots, group, why));
      if (why.empty() && group.MostGroups() > 0) {
        made.types.push_back(std::move(group));
      } else {
        made.left_out.push_back(absl::StrCat(machine.name, ", ", count,
                                             count == 1 ? " rank" : " ranks", ": ",
                                             why.empty() ? "a host has fewer" : why));
      }
    }
  }
  if (!made.types.empty()) return made;
  std::string reasons;
  for (const std::string& line : made.left_out) reasons += "\n  " + line;
  return absl::InvalidArgumentError("no machine can hold a group of this model:" + reasons);
}

}  // namespace penstock::plan
