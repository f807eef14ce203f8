// The slots of one replica group. After a sequence ends, its slot is free on the shards only once a
// plan has listed it in `ends`. The same plan may start a new sequence on the slot, since shards
// apply ends first. Not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"

namespace penstock {

class SlotPool {
 public:
  explicit SlotPool(std::uint32_t slots);

  // Number of slots on which the next plan can start sequences.
  std::uint32_t available() const;
  // A slot for a sequence that the next plan starts. Requires: available() > 0.
  SlotId Take();
  // Frees a slot whose sequence no plan has started.
  void PutBack(SlotId slot);
  // Marks a slot whose sequence ended. Requires: no plan in flight names it.
  void End(SlotId slot);

  bool has_ends() const { return !ended_.empty(); }
  // Returns `ends` of the next plan. These slots are free from then on.
  std::vector<SlotId> TakeEnds();

 private:
  std::vector<SlotId> free_;   // used as a stack
  std::vector<SlotId> ended_;  // for `ends` of the next plan; the first reused_ were taken again
  std::uint32_t reused_ = 0;
};

}  // namespace penstock
