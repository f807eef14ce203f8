#include "common/kv/slot_pool.h"

#include <utility>

#include "common/check.h"

namespace penstock {

SlotPool::SlotPool(std::uint32_t slots) {
  free_.reserve(slots);
  for (std::uint32_t i = slots; i > 0; --i) free_.push_back(SlotId(i - 1));
}

std::uint32_t SlotPool::available() const {
  return static_cast<std::uint32_t>(free_.size() + ended_.size()) - reused_;
}

SlotId SlotPool::Take() {
  PENSTOCK_CHECK(available() > 0, "a slot is taken only when one is free");
  if (free_.empty()) return ended_[reused_++];
  const SlotId slot = free_.back();
  free_.pop_back();
  return slot;
}

void SlotPool::PutBack(SlotId slot) { free_.push_back(slot); }

void SlotPool::End(SlotId slot) { ended_.push_back(slot); }

std::vector<SlotId> SlotPool::TakeEnds() {
  free_.insert(free_.end(), ended_.begin() + reused_, ended_.end());
  reused_ = 0;
  return std::exchange(ended_, {});
}

}  // namespace penstock
