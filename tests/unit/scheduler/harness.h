// A Scheduler with one simulated shard. Each call applies one input and returns its outputs. Plans
// are executed at once, and Result() delivers the oldest result.
#pragma once

#include <deque>
#include <utility>
#include <vector>

#include "scheduler/scheduler.h"
#include "sim/sim_group.h"

namespace penstock::scheduler {

class Harness {
 public:
  static GroupCapacity Capacity() {
    GroupCapacity capacity;
    capacity.blocks = 64;
    capacity.block_size = 4;
    capacity.slots = 8;
    capacity.max_sequence_length = 256;
    capacity.max_step_tokens = 1024;
    return capacity;
  }

  explicit Harness(Config config = {}, GroupCapacity capacity = Capacity(),
                   sim::SimGroupOptions options = {})
      : capacity_(capacity), options_(options), scheduler_(config), shard_(capacity, options) {}

  // Group 0 comes up.
  Outputs Up() {
    epoch_ = Epoch(epoch_.value() + 1);
    shard_ = sim::SimGroup(capacity_, options_);
    results_.clear();
    return Apply(GroupUp{GroupId(0), epoch_, capacity_, {}});
  }

  static Arrival Request(std::uint64_t id, std::uint32_t prompt, std::uint32_t max_new) {
    Arrival arrival;
    arrival.request = RequestId(id);
    arrival.prompt.assign(prompt, static_cast<TokenId>(100 + id));
    arrival.max_new_tokens = max_new;
    return arrival;
  }
  Outputs Arrive(std::uint64_t id, std::uint32_t prompt, std::uint32_t max_new) {
    return Apply(Request(id, prompt, max_new));
  }

  // Delivers the oldest result. There must be one.
  Outputs Result() {
    StepResult result = std::move(results_.front());
    results_.pop_front();
    return Apply(StepDone{GroupId(0), std::move(result)});
  }

  Outputs Apply(decltype(Input::what) what) {
    now_ += Duration(10);
    Outputs out;
    scheduler_.Apply({now_, std::move(what)}, out);
    for (const PlanOut& plan : out.plans) results_.push_back(shard_.Execute(plan.plan));
    return out;
  }

  std::size_t in_flight() const { return results_.size(); }
  Epoch epoch() const { return epoch_; }
  Snapshot state() const { return scheduler_.Inspect(); }
  const sim::SimGroup& shard() const { return shard_; }

 private:
  GroupCapacity capacity_;
  sim::SimGroupOptions options_;
  Scheduler scheduler_;
  sim::SimGroup shard_;
  std::deque<StepResult> results_;
  Epoch epoch_;
  Time now_;
};

// Events of one kind, in order.
template <class T>
std::vector<T> All(const Outputs& out) {
  std::vector<T> found;
  for (const Event& event : out.events) {
    if (const T* what = std::get_if<T>(&event.what)) found.push_back(*what);
  }
  return found;
}

inline std::vector<Decision> All(const Outputs& out, DecisionKind kind) {
  std::vector<Decision> found;
  for (const Decision& decision : out.decisions) {
    if (decision.kind == kind) found.push_back(decision);
  }
  return found;
}

}  // namespace penstock::scheduler
