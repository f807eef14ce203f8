// The adapters of a rank by id, and which of them each running sequence uses. A sequence keeps its
// adapter until it ends, also when the id is removed meanwhile.
//
// Threading: the model thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "shard/backend/backend.h"
#include "shard/service/rank_engine.h"

namespace penstock::shard {

class AdapterTable {
 public:
  void Add(const std::string& id, ReadyAdapter adapter) { ids_[id] = std::move(adapter); }
  void Remove(const std::string& id) { ids_.erase(id); }
  // Whether it is the id of an adapter, or empty.
  bool Knows(const std::string& id) const { return id.empty() || ids_.contains(id); }
  const std::map<std::string, ReadyAdapter>& all() const { return ids_; }

  // The ends and the starts of the plan.
  void Apply(const StepPlan& plan);
  // The adapter of a running sequence; null: none.
  const BackendAdapter* Of(SlotId slot) const;
  // Ends all sequences.
  void Reset() { slots_.clear(); }

 private:
  std::map<std::string, ReadyAdapter> ids_;
  std::vector<std::shared_ptr<const BackendAdapter>> slots_;  // as far as one was used
};

}  // namespace penstock::shard
