// What every thread of the CPU shard does first that works behind the start (weights that move to
// huge pages, K/V memory that is touched, the file of the weights cache).
#pragma once

namespace penstock::shard::cpu {

// The calling thread computes only where nobody else would (SCHED_IDLE; where that could hold up
// others, with the lowest usual priority).
void GoBehindEverythingElse();

}  // namespace penstock::shard::cpu
