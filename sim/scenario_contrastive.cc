#include "sim/scenario_contrastive.h"

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

}  // namespace penstock::sim
