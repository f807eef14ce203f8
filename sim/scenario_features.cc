#include "sim/scenario_features.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>

namespace penstock::sim {

void DrawContrastive(Random& random, Scenario& scenario) {
  if (!random.OneIn(3)) return;
  const std::uint32_t most = random.OneIn(5) ? 0 : random.Between(2, 8);
  for (GroupCapacity& group : scenario.groups) group.max_candidates = most;
  const std::uint32_t one_in = random.Between(1, 4);
  for (TimedEvent& event : scenario.script) {
    auto* client = std::get_if<ClientArrives>(&event.what);
    if (client == nullptr || !random.OneIn(one_in)) continue;
    client->arrival.sampling.penalty_alpha = 0.6f;
    client->arrival.sampling.top_k = random.Between(1, most + 1);
  }
}

void DrawForced(Scenario& scenario) {
  for (std::uint32_t i = 0; i < scenario.groups.size(); ++i) {
    const std::uint64_t dice = Mix(scenario.seed, 80 + (Mix(scenario.seed, 79) % 2) * i);
    if (dice % 3 > 0) scenario.groups[i].forced_tokens = 1 + dice / 3 % (dice % 2 == 0 ? 15 : 3);
  }
}

void DrawWindows(Random& random, Scenario& scenario) {
  if (!random.OneIn(3)) return;
  const std::uint32_t window = random.OneIn(8) ? random.Between(1, 3) : random.Between(2, 40);
  for (GroupCapacity& group : scenario.groups) {
    if (group.cells > 0) continue;
    const std::uint32_t rows = std::max(scenario.config.max_decode_rows, 1 + group.forced_tokens);
    const std::uint32_t plans = scenario.config.pipeline_depth * rows;
    const std::uint32_t written = std::max(group.max_step_tokens, plans);
    const std::uint32_t size = group.block_size;
    const std::uint32_t least = std::min((window + written + size - 1) / size + 1, group.blocks);
    group.window = window;
    group.window_blocks = random.OneIn(4) ? least : random.Between(least, 3 * least);
  }
}

void DrawLengthRule(Random& random, Scenario& scenario) {
  if (!random.OneIn(4)) return;
  const LengthRule rule = random.OneIn(3) ? LengthRule::kPromptLength : LengthRule::kRecompute;
  const std::uint32_t original = random.Between(1, 60);
  for (GroupCapacity& group : scenario.groups) {
    group.length_rule = rule;
    group.original_length = original;
  }
}

void DrawSnapshots(Random& random, Scenario& scenario) {
  if (!random.OneIn(4)) return;
  for (GroupCapacity& group : scenario.groups) {
    if (group.cells > 0) continue;
    group.shares_blocks = true;
    group.snapshots = random.OneIn(4) ? 1 : random.Between(1, 8);
  }
}

void DrawRecovery(Scenario& scenario) {
  const std::uint64_t dice = Mix(scenario.seed, 60);
  for (std::uint32_t i = 0; i < scenario.groups.size(); ++i) {
    scenario.arithmetic_classes.push_back(dice % 5 == 0 ? Mix(scenario.seed, 61 + i) % 2 : 1);
  }
  if (dice / 5 % 4 == 0) return;
  const bool soon = dice / 20 % 3 == 0;
  const auto units = static_cast<Duration::rep>(soon ? 1 + dice / 60 % 60 : 100'000);
  scenario.config.recovery_timeout = Duration{1000} * units;
  if (dice / 3600 % 3 == 0) scenario.poison = RequestId(1 + dice / 10800 % 6);
}

void DrawAccounts(Scenario& scenario) {
  const std::uint64_t dice = Mix(scenario.seed, 70);
  if (dice % 3 != 0) return;
  const std::uint64_t accounts = 2 + dice / 3 % 2;
  const bool weighted = dice / 6 % 2 == 0;
  const bool changing = dice / 12 % 8 == 0;
  for (TimedEvent& event : scenario.script) {
    auto* client = std::get_if<ClientArrives>(&event.what);
    if (client == nullptr) continue;
    scheduler::Arrival& arrival = client->arrival;
    const std::uint64_t account = Mix(arrival.request.value(), scenario.seed) % (2 * accounts);
    arrival.account = "account" + std::to_string(account < accounts ? 0 : account - accounts);
    const std::uint64_t kind = changing ? arrival.request.value() : account;
    if (weighted) arrival.weight = 1 + static_cast<std::uint32_t>(Mix(kind, dice) % 9);
    if (weighted && !changing && account < accounts) {
      arrival.weight = 1 + static_cast<std::uint32_t>(Mix(accounts, dice) % 9);
    }
  }
}

void DrawLearned(Scenario& scenario) {
  const std::uint64_t dice = Mix(scenario.seed, 90);
  if (dice % 5 != 0) return;
  scheduler::Config& config = scenario.config;
  config.order = scheduler::Order::kLearned;
  config.starvation_steps = static_cast<std::uint32_t>(dice / 5 % 24);
  config.starvation_quantum = static_cast<std::uint32_t>(1 + dice / 120 % 4);
  if (dice / 480 % 4 != 0) config.batching = scheduler::Batching::kContinuous;
  if (dice / 1920 % 3 != 0) config.max_batch_size = static_cast<std::uint32_t>(1 + dice / 5760 % 4);
  if (dice / 23040 % 3 != 0) config.max_waiting_requests += 12;
  for (TimedEvent& event : scenario.script) {
    auto* client = std::get_if<ClientArrives>(&event.what);
    if (client == nullptr) continue;
    const std::uint64_t own = Mix(scenario.seed, 91 + client->arrival.request.value());
    if (own % 4 != 0) client->arrival.ranked_tokens = static_cast<std::uint32_t>(own / 4 % 30);
  }
}

}  // namespace penstock::sim
