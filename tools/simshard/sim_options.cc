#include "tools/simshard/sim_options.h"

#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "common/bad_option.h"
#include "common/exit_codes.h"
#include "common/log.h"
#include "common/status.h"
#include "shard/tgi/tgi_driver.h"
#include "tools/simshard/sim_engine.h"

namespace penstock::simshard {
namespace {

std::uint32_t NumberOption(const options::Values& values, std::string_view name) {
  return static_cast<std::uint32_t>(values.FindInt(name).value_or(0));
}

absl::StatusOr<SimOptions> ReadOptions(const options::Values& values) {
  SimOptions options;
  options.model_folder = values.GetString("model-id");
  options.vocabulary = NumberOption(values, "vocab-size");
  options.tokens = values.GetString("tokens") == "echo" ? TokenRule::kEcho : TokenRule::kHash;
  options.rank = NumberOption(values, "rank");
  options.world_size = NumberOption(values, "world-size");
  options.blocks = NumberOption(values, "blocks");
  options.block_size = NumberOption(values, "block-size");
  options.window = NumberOption(values, "simulated-window");
  options.window_blocks = NumberOption(values, "window-blocks");
  if (options.window_blocks == 0) options.window_blocks = options.blocks;
  options.max_sequence_length = NumberOption(values, "max-sequence-length");
  options.time_scale = values.GetDouble("time-scale");
  const std::string& machine = values.GetString("step-time-model");
  if (!machine.empty()) {
    options.machine = scheduler::MachineModel::Find(machine);
    if (!options.machine.has_value()) {
      std::string names;
      for (const std::string& name : scheduler::MachineModel::Names()) names += " " + name;
      return BadOption("step-time-model", machine, "one of" + names);
    }
  }
  options.step_time = values.GetDuration("step-time");
  options.token_time = values.GetDuration("token-time");
  options.fail_at_step = static_cast<std::uint64_t>(values.FindInt("fail-at-step").value_or(0));
  options.hang_at_step = static_cast<std::uint64_t>(values.FindInt("hang-at-step").value_or(0));
  options.kill = [] { ::raise(SIGKILL); };
  options.die = [](const std::string& why) {
    log::Error(why);
    std::_Exit(kExitFailure);
  };
  return options;
}

absl::StatusOr<FaultScript> ReadFaults(const options::Values& values) {
  std::string text = values.GetString("faults");
  if (text.starts_with('@')) {
    std::ifstream file(text.substr(1), std::ios::binary);
    if (!file) return BadOption("faults", text, "@FILE, a file that can be read");
    std::ostringstream content;
    content << file.rdbuf();
    text = std::move(content).str();
  }
  return FaultScript::Parse(text, static_cast<std::uint64_t>(values.GetInt("fault-seed")));
}

}  // namespace

absl::StatusOr<std::vector<shard::HostedShard>> MakeShards(const options::Values& values) {
  PENSTOCK_ASSIGN_OR_RETURN(const SimOptions options, ReadOptions(values));
  PENSTOCK_ASSIGN_OR_RETURN(const FaultScript faults, ReadFaults(values));
  PENSTOCK_ASSIGN_OR_RETURN(const shard::ShardListen listen, shard::ReadShardListen(values));
  const std::optional<std::int64_t> one = values.FindInt("group");
  const std::uint32_t groups = NumberOption(values, "num-groups");
  if (one && groups > 1) return BadOption("num-groups", std::to_string(groups), "1 with --group");
  std::vector<shard::HostedShard> shards;
  for (std::uint32_t i = 0; i < groups; ++i) {
    const std::optional<std::int64_t> group = groups > 1 ? std::optional<std::int64_t>(i) : one;
    for (std::uint32_t rank = 0; rank < options.world_size; ++rank) {
      if (values.IsSet("rank") && rank != options.rank) continue;
      SimOptions mine = options;
      mine.rank = rank;
      mine.faults = faults.For(static_cast<std::uint32_t>(group.value_or(0)), rank);
      shards.push_back({std::make_unique<SimEngine>(std::move(mine)),
                        listen.At(group, static_cast<std::uint32_t>(shards.size())),
                        shard::TgiDriverFactory(options.model_folder)});
    }
  }
  return shards;
}

}  // namespace penstock::simshard
