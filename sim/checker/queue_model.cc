#include "sim/checker/queue_model.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace penstock::sim {

using scheduler::Arrival;
using scheduler::Order;

std::uint32_t QueueModel::MaxOvertakes() const {
  if (config_.order == Order::kFcfs) return 0;
  return config_.max_overtakes > 0 ? config_.max_overtakes : config_.max_waiting_requests;
}

void QueueModel::Enter(RequestModel& request) {
  request.place = ++places_;
  request.since = steps_;
  request.passed = request.overtaken = 0;
}

void QueueModel::TakeQueued(RequestModel& request) {
  if (!request.ran()) return;
  request.place = ++places_;
  if (request.yielded && request.waiting()) shares_.Return(request);
}

bool QueueModel::IsDue(const RequestModel& request) const {
  const std::uint64_t most = config_.starvation_steps;
  return config_.order == Order::kLearned && most > 0 && steps_ - request.since >= most;
}

// Checks that the victim has the lowest priority of the sequences that may be preempted, and among
// those the latest arrival.
void QueueModel::CheckVictim(const RequestModel& victim) const {
  const auto rank = [this](const RequestModel& request) {
    const bool ranked = config_.order == Order::kPriority;
    return std::make_pair(ranked ? -std::int64_t{request.arrival.priority} : 0, request.order);
  };
  for (const RequestId id : alive_) {
    const RequestModel& other = requests_.at(id);
    if (other.state != RequestModel::State::kAdmitted || other.group != victim.group) continue;
    if (IsPromised(config_.admission, other) || other.preemptions >= kMaxPreemptions) continue;
    if (rank(other) <= rank(victim)) continue;
    findings_.Add("G7", Name(victim.arrival.request) + " is preempted before " + Name(id));
  }
}

void QueueModel::TakePreemption(const Decision& decision, RequestModel& request,
                                const GroupModel& group) {
  const std::string name = Name(request.arrival.request);
  if (decision.short_of == Budget::kOriginalLength) {
    const SequenceModel* const sequence =
        request.sequence ? group.Find(*request.sequence) : nullptr;
    const bool needed = sequence != nullptr && sequence->PositionsLeft() == 0;
    if (!needed || request.recomputed) findings_.Add("G7", name + " is computed again needlessly");
    request.recomputed = true;
    request.yielded = false;
    return;
  }
  if (decision.short_of == Budget::kOrder) return TakeYield(decision, request, group);
  request.yielded = false;
  CheckVictim(request);
  if (IsPromised(config_.admission, request)) {
    findings_.Add("G7", name + " is preempted though its length was promised");
  }
  if (++request.preemptions > kMaxPreemptions) {
    findings_.Add("G7", name + " is preempted " + std::to_string(request.preemptions) + " times");
  }
}

// Only a request that was admitted as due gives its place up, after its quantum, to one that is due
// as well. That one came first of its account, whose turn it is.
void QueueModel::TakeYield(const Decision& decision, RequestModel& request,
                           const GroupModel& group) {
  const std::string name = Name(request.arrival.request);
  request.yielded = true;
  const auto due = requests_.find(decision.behind.value_or(RequestId(0)));
  if (due == requests_.end() || !due->second.waiting() || due->second.restart() ||
      !IsDue(due->second) || !group.Fits(due->second)) {
    return findings_.Add("G6", name + " yields to a request that is not due");
  }
  for (const RequestId id : alive_) {
    const RequestModel& other = requests_.at(id);
    if (!other.waiting() || other.refused || other.restart()) continue;
    if (other.arrival.account != due->second.arrival.account) continue;
    if (other.place < due->second.place) {
      findings_.Add("G6", name + " yields to another than " + Name(id) + ", which came first");
    }
  }
  if (!shares_.IsTurn(due->second, group)) {
    findings_.Add("G11", name + " yields to " + Name(due->first) + ", whose turn it is not");
  }
  const std::uint32_t tokens = request.received() - request.at_start;
  if (!request.due || tokens < config_.starvation_quantum) {
    findings_.Add("G6", name + " yields after " + std::to_string(tokens) + " tokens");
  }
}

// The admitted request is the front of the group's queue: a preempted request, or the oldest one
// of its account that was overtaken as often as allowed, or the first in the order.
void QueueModel::CheckOrder(const RequestModel& admitted, const GroupModel& group) const {
  if (config_.order == Order::kLongestPrefix) return;
  const bool learned = config_.order == Order::kLearned;  // its ranks depend on prefix caches
  const auto key = [this](const RequestModel& request) -> std::int64_t {
    const Arrival& arrival = request.arrival;
    if (config_.order == Order::kPriority) return -std::int64_t{arrival.priority};
    if (config_.order != Order::kShortestPredicted) return 0;
    return arrival.predicted_tokens > 0 ? arrival.predicted_tokens : arrival.max_new_tokens;
  };
  const std::uint32_t bound = MaxOvertakes();
  const RequestModel* oldest = nullptr;
  const RequestModel* first = nullptr;
  const RequestModel* fitting = nullptr;
  const auto earlier = [](const RequestModel* a, const RequestModel& b) {
    return a == nullptr || b.place < a->place;
  };
  for (const RequestId id : alive_) {
    const RequestModel& request = requests_.at(id);
    if (!request.waiting() || request.refused) continue;
    if (request.restart()) {
      if (admitted.restart() || !group.Fits(request)) continue;
      return findings_.Add("G6", Name(admitted.arrival.request) + " is admitted before " +
                                     Name(id) + ", which was preempted");
    }
    if (request.arrival.account != admitted.arrival.account) continue;
    if (earlier(oldest, request)) oldest = &request;
    if (group.Fits(request) && earlier(fitting, request)) fitting = &request;
    const auto rank = std::make_pair(key(request), request.order);
    if (first == nullptr || rank < std::make_pair(key(*first), first->order)) first = &request;
  }
  if (admitted.restart() || first == nullptr) return;
  const bool forced = oldest->passed >= bound || IsDue(*oldest);
  if (learned && !forced) return;
  if (forced) first = oldest;
  if (!group.Fits(*first)) first = fitting;
  if (first == &admitted || first == nullptr) return;
  findings_.Add("G6", Name(admitted.arrival.request) + " is admitted before " +
                          Name(first->arrival.request) + ", which is the front of the queue");
}

void QueueModel::CheckBatch(const RequestModel& admitted, const GroupModel& group,
                            const Decision& decision) {
  if (config_.batching != scheduler::Batching::kStatic) return;
  Batch batch{decision.step};
  if (config_.static_grouping == scheduler::StaticGrouping::kEqual) {
    batch.prompt = admitted.arrival.prompt.size();
    batch.output = admitted.arrival.max_new_tokens;
  }
  if (group.running() == 0) batches_[decision.group] = batch;
  if (batches_[decision.group] == batch) return;
  findings_.Add("G5", Name(admitted.arrival.request) + " joins a batch that has no place for it");
}

// A waiting request is overtaken if it arrived before the admitted one of its account and fits the
// group. A preempted request comes before all new ones, so it overtakes only older preempted ones.
void QueueModel::CountOvertakes(const RequestModel& admitted, const GroupModel& group) {
  const bool restart = admitted.restart();
  const std::uint32_t bound = MaxOvertakes();
  for (const RequestId id : alive_) {
    RequestModel& waits = requests_.at(id);
    if (!waits.waiting() || waits.refused || !group.Fits(waits)) continue;
    const bool later =
        waits.restart() ? waits.order >= admitted.order : waits.place >= admitted.place;
    if (later) continue;
    if (restart && !waits.restart()) continue;
    if (!waits.restart() && waits.arrival.account != admitted.arrival.account) continue;
    if (waits.restart()) {
      findings_.Add("G6", Name(id) + " was preempted, waits, and is overtaken by " +
                              Name(admitted.arrival.request));
    } else if (IsDue(waits)) {
      findings_.Add("G6", Name(id) + " is due after " + std::to_string(steps_ - waits.since) +
                              " steps, waits, and is overtaken by " +
                              Name(admitted.arrival.request));
    } else if (++waits.overtaken > bound) {
      findings_.Add("G6", Name(id) + " is overtaken " + std::to_string(waits.overtaken) +
                              " times; the bound is " + std::to_string(bound));
    }
  }
}

// Assumes that all requests before it run one after the other, one token a step.
std::uint64_t QueueModel::MostSteps() const {
  const bool simple = config_.order == Order::kFcfs && config_.max_decode_rows == 1 &&
                      config_.admission == scheduler::AdmissionMode::kGuaranteed &&
                      config_.batching == scheduler::Batching::kContinuous &&
                      config_.prefill == scheduler::Prefill::kChunked;
  if (!simple || shares_.several()) return 0;
  std::uint64_t steps = 0;
  for (const RequestId id : alive_) steps += requests_.at(id).WorstCase() + config_.pipeline_depth;
  return steps;
}

void QueueModel::CountWaiting(const GroupCapacity& capacity) {
  if (shares_.several()) return;
  // Each request before it may be computed twice.
  const bool twice = capacity.length_rule == LengthRule::kRecompute;
  for (const RequestId id : alive_) {
    RequestModel& request = requests_.at(id);
    if (!request.waiting() || request.most_steps == 0 || request.recomputed) continue;
    const std::uint64_t most = twice ? 2 * request.most_steps : request.most_steps;
    if (++request.steps_waited <= most) continue;
    findings_.Add("G6", Name(id) + " waits " + std::to_string(request.steps_waited) +
                            " steps; the bound is " + std::to_string(most));
  }
}

void QueueModel::BeginBounds() {
  for (const RequestId id : alive_) {
    RequestModel& request = requests_.at(id);
    request.steps_waited = 0;
    request.most_steps = MostSteps();
  }
}

void QueueModel::CheckReasons(const scheduler::Snapshot& state) const {
  const auto& reasons = state.waiting_for;
  const auto sum = std::accumulate(reasons.begin(), reasons.end(), 0u);
  if (sum == state.waiting) return;
  findings_.Add("G2", "requests waiting: " + std::to_string(state.waiting) + ", of all reasons " +
                          std::to_string(sum));
}

}  // namespace penstock::sim
