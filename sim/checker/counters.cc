#include "sim/checker/counters.h"

#include <string>

namespace penstock::sim {

using scheduler::Snapshot;

void CompareCounters(const Snapshot& own, const Snapshot& told, Findings& findings) {
  const auto compare = [&](const char* guarantee, const char* what, std::uint32_t mine,
                           std::uint32_t core) {
    if (mine == core) return;
    findings.Add(guarantee, std::string(what) + ": " + std::to_string(mine) + " by the plans, " +
                                std::to_string(core) + " by the core's count");
  };
  compare("G8", "blocks retiring", own.blocks_retiring, told.blocks_retiring);
  compare("G1", "blocks used", own.blocks_used, told.blocks_used);
  compare("G1", "blocks", own.blocks_total, told.blocks_total);
  compare("G1", "blocks free or cached", own.blocks_total - own.blocks_used - own.blocks_retiring,
          told.blocks_free + told.blocks_cached);
  compare("G8", "window blocks retiring", own.window_blocks_retiring, told.window_blocks_retiring);
  compare("G1", "window blocks used", own.window_blocks_used, told.window_blocks_used);
  compare("G1", "window blocks", own.window_blocks_total, told.window_blocks_total);
  compare("G1", "window blocks free or cached",
          own.window_blocks_total - own.window_blocks_used - own.window_blocks_retiring,
          told.window_blocks_free + told.window_blocks_cached);
  compare("G8", "sequences retiring", own.retiring, told.retiring);
  compare("G2", "requests running", own.running, told.running);
  compare("G2", "requests waiting", own.waiting, told.waiting);
  compare("G4", "plans in flight", own.plans_in_flight, told.plans_in_flight);
}

}  // namespace penstock::sim
