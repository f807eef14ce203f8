#include "shard/executor/adapter_table.h"

namespace penstock::shard {

void AdapterTable::Apply(const StepPlan& plan) {
  for (const SlotId slot : plan.ends) {
    if (slot.value() < slots_.size()) slots_[slot.value()].reset();
  }
  for (const SequenceStart& start : plan.starts) {
    const auto found = ids_.find(start.adapter_id);
    if (found == ids_.end()) continue;
    if (start.slot.value() >= slots_.size()) slots_.resize(start.slot.value() + 1);
    slots_[start.slot.value()] = found->second.adapter;
  }
}

const BackendAdapter* AdapterTable::Of(SlotId slot) const {
  return slot.value() < slots_.size() ? slots_[slot.value()].get() : nullptr;
}

}  // namespace penstock::shard
