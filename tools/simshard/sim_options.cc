#include "tools/simshard/sim_options.h"

#include <cstdlib>
#include <string>

#include "common/exit_codes.h"
#include "common/log.h"
#include "tools/simshard/sim_engine.h"

namespace penstock::simshard {
namespace {

std::uint32_t Number(const options::Values& values, std::string_view name) {
  return static_cast<std::uint32_t>(values.FindInt(name).value_or(0));
}

SimOptions ReadOptions(const options::Values& values) {
  SimOptions options;
  options.model_folder = values.GetString("model-id");
  options.vocabulary = Number(values, "vocab-size");
  options.tokens = values.GetString("tokens") == "echo" ? TokenRule::kEcho : TokenRule::kHash;
  options.rank = Number(values, "rank");
  options.world_size = Number(values, "world-size");
  options.blocks = Number(values, "blocks");
  options.block_size = Number(values, "block-size");
  options.max_sequence_length = Number(values, "max-sequence-length");
  options.step_time = values.GetDuration("step-time");
  options.token_time = values.GetDuration("token-time");
  options.fail_at_step = static_cast<std::uint64_t>(values.FindInt("fail-at-step").value_or(0));
  options.hang_at_step = static_cast<std::uint64_t>(values.FindInt("hang-at-step").value_or(0));
  options.die = [](const std::string& why) {
    log::Error(why);
    std::_Exit(kExitFailure);
  };
  return options;
}

}  // namespace

std::vector<std::unique_ptr<shard::StepEngine>> MakeEngines(const options::Values& values) {
  const SimOptions options = ReadOptions(values);
  std::vector<std::unique_ptr<shard::StepEngine>> engines;
  if (values.IsSet("rank")) {
    engines.push_back(std::make_unique<SimEngine>(options));
    return engines;
  }
  for (std::uint32_t rank = 0; rank < options.world_size; ++rank) {
    SimOptions mine = options;
    mine.rank = rank;
    engines.push_back(std::make_unique<SimEngine>(mine));
  }
  return engines;
}

}  // namespace penstock::simshard
