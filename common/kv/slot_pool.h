// Rows of shard state ("slots") of one replica group. A slot whose sequence has ended is known to
// the shards as free only after a plan listed it in `ends`; that plan may start a new sequence on
// it, since ends are applied first.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"

namespace penstock {

class SlotPool {
 public:
  explicit SlotPool(std::uint32_t slots);

  // Slots that the next plan can start sequences on.
  std::uint32_t available() const;
  // A slot for a sequence that starts in the plan being made. available() must not be 0.
  SlotId Take();
  // The slot's sequence never reached the shards: free at once.
  void PutBack(SlotId slot);
  // The slot's sequence ended and no plan in flight names it: due in `ends` of the next plan.
  void End(SlotId slot);

  bool has_ends() const { return !ended_.empty(); }
  // `ends` of the plan being made; those slots are free from then on.
  std::vector<SlotId> TakeEnds();

 private:
  std::vector<SlotId> free_;   // used as a stack
  std::vector<SlotId> ended_;  // due in the next plan; the first reused_ are taken again already
  std::uint32_t reused_ = 0;
};

}  // namespace penstock
