#include "sim/checker/checker.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/checker/counters.h"

namespace penstock::sim {
namespace {

using scheduler::AdmissionMode;
using scheduler::Arrival;
using scheduler::Batching;
using scheduler::Cancel;
using scheduler::FailureKind;
using scheduler::FinishAt;
using scheduler::GroupLost;
using scheduler::GroupUp;
using scheduler::Input;
using scheduler::Order;
using scheduler::Outputs;
using scheduler::PlanOut;
using scheduler::Prefill;
using scheduler::Snapshot;
using scheduler::Started;
using scheduler::StepDone;
using scheduler::StepInfo;
using State = RequestModel::State;

std::string Name(GroupId group) { return "group " + std::to_string(group.value()); }

}  // namespace

void Checker::Check(const Input& input, const Outputs& out, const Snapshot& state) {
  now_ = input.now;
  std::visit([this](const auto& what) { On(what); }, input.what);
  losses_.FailOverdue(now_);
  for (const RequestId id : alive_) {
    const Request& request = requests_.at(id);
    const bool waits = losses_.recovers() && request.ran();
    if (request.waiting() && !waits && NeverFits(request)) {
      oracle_.AllowFailure(request, FailureKind::kTooLarge);
    }
  }
  queue_.shares().TakeOutputs(out);
  WalkOutputs(out);
  CheckStarted(out);
  oracle_.Check(out.events, requests_);
  std::erase_if(alive_, [this](RequestId id) { return requests_.at(id).done(); });
  CheckCounters(state);
  queue_.CheckReasons(state);
  queue_.shares().CheckBound();
  CheckDecisionCounts(out);
  CheckProgress();
  CheckWorstCases();
  if (const auto difference = model_.Check(input, out, state)) findings_.Add("model", *difference);
}

// --- Inputs

void Checker::On(const Arrival& arrival) {
  Request& request = requests_[arrival.request];
  request.arrival = arrival;
  request.order = ++arrivals_;
  queue_.Enter(request);
  ++queued_;
  const std::uint32_t before = waiting(false);
  alive_.insert(arrival.request);
  if (draining_) {
    oracle_.ExpectFailure(request, FailureKind::kDraining);
  } else if (NeverFits(request)) {
    oracle_.ExpectFailure(request, FailureKind::kTooLarge);
  } else if (before >= config_.max_waiting_requests) {
    oracle_.ExpectFailure(request, FailureKind::kQueueFull);
  } else {
    queue_.shares().Arrive(request);
  }
  request.most_steps = queue_.MostSteps();
}

void Checker::On(const Cancel& cancel) {
  const auto it = requests_.find(cancel.request);
  if (it == requests_.end() || it->second.done()) return;
  queue_.shares().Leave(it->second);
  EndSequence(it->second);
  oracle_.ExpectEnd(it->second, FinishReason::kCancelled, it->second.received());
}

void Checker::On(const FinishAt& finish) {
  const auto it = requests_.find(finish.request);
  if (it == requests_.end() || it->second.done()) return;
  Request& request = it->second;
  const bool never_ran = request.waiting() && !request.ran();
  if (never_ran) return;  // no token yet, so no stop string
  if (finish.token_count > request.received()) {
    request.finish_at = std::min(finish.token_count, request.finish_at.value_or(UINT32_MAX));
    return;
  }
  queue_.shares().Leave(request);
  EndSequence(request);
  oracle_.ExpectEnd(request, FinishReason::kStopString, finish.token_count);
}

// The step gave no token because the mask of the grammar was not ready.
bool Checker::IsLate(const Request& request, const SequenceResult& part) {
  return !request.arrival.grammar.empty() && part.tokens.empty() &&
         part.finish == ShardFinish::kNone && part.committed_length >= request.prompt();
}

void Checker::On(const StepDone& done) {
  const auto group = groups_.find(done.group);
  if (group == groups_.end()) return;
  std::vector<std::pair<RequestId, const SequenceResult*>> parts;
  for (const SequenceResult& part : done.result.sequences) {
    const SequenceModel* sequence = group->second.Find(part.sequence);
    if (sequence != nullptr) parts.emplace_back(sequence->request, &part);
  }
  if (!group->second.TakeResult(done.result)) return;
  bool late = false;
  for (const auto& [id, part] : parts) {
    Request& request = requests_.at(id);
    late = late || IsLate(request, *part);
    if (request.done() || request.sequence != part->sequence) continue;
    oracle_.ExpectResult(request, *part);
    if (request.done()) EndSequence(request);
  }
  if (!late && groups_.size() == 1) queue_.CountWaiting(groups_.begin()->second.capacity());
  RequeueSettled();
}

void Checker::On(const GroupUp& up) {
  Lose({up.group, up.epoch, "the replica group was formed again"});
  groups_.try_emplace(up.group, config_, up, findings_);
  losses_.SetDeadlines(now_);
}

void Checker::On(const GroupLost& lost) {
  const auto it = groups_.find(lost.group);
  if (it != groups_.end() && it->second.epoch() == lost.epoch) {
    Lose(lost);
  }
}

void Checker::Lose(const GroupLost& lost) {
  const GroupId group = lost.group;
  if (!groups_.contains(group)) return;
  for (const RequestId id : alive_) {
    Request& request = requests_.at(id);
    if (request.group != group && request.leaves != group) continue;
    request.group.reset();
    if (losses_.recovers()) {
      if (losses_.Lose(request, lost.in_order || draining_)) Requeue(request);
    } else if (request.leaves == group) {
      oracle_.AllowFailure(request, FailureKind::kGroupLost);
      Requeue(request);
    } else {
      oracle_.ExpectFailure(request, FailureKind::kGroupLost, lost.reason);
    }
  }
  groups_.erase(group);
  losses_.SetDeadlines(now_);
  if (losses_.recovers()) queue_.BeginBounds();
}

void Checker::EndSequence(Request& request) {
  if (request.group) groups_.at(*request.group).End(request);
}

void Checker::Requeue(Request& request) {
  request.leaves.reset();
  request.sequence.reset();
  request.fails_at.reset();
  request.prompt_logprobs.clear();
  request.prompt_alternatives.clear();
  if (request.done()) return;
  request.state = State::kWaiting;
  queue_.Enter(request);
  ++queued_;
}

void Checker::RequeueSettled() {
  for (const RequestId id : alive_) {
    Request& request = requests_.at(id);
    if (!request.leaves) continue;
    if (groups_.at(*request.leaves).Find(*request.sequence) == nullptr) Requeue(request);
  }
}

bool Checker::NeverFits(const Request& request) const {
  const auto fits = [&request](const auto& group) { return group.second.Fits(request); };
  return !groups_.empty() && std::none_of(groups_.begin(), groups_.end(), fits);
}

std::uint32_t Checker::waiting(bool restarts_too) const {
  std::uint32_t count = 0;
  for (const RequestId id : alive_) {
    const Request& request = requests_.at(id);
    if (request.waiting() && !request.refused && (restarts_too || !request.ran())) ++count;
  }
  return count;
}

// --- Outputs

// `out` holds decisions and plans in separate lists. Takes a step's decisions before its plan.
void Checker::WalkOutputs(const Outputs& out) {
  if (out.plans.size() != out.steps.size())
    findings_.Add("G5", "a plan without a StepInfo, or a StepInfo without a plan");
  refusals_left_ = static_cast<std::uint32_t>(
      std::ranges::count(out.decisions, DecisionKind::kRefused,
                         [](const Decision& decision) { return decision.kind; }));
  std::size_t next = 0;
  for (std::size_t i = 0; i < out.plans.size() && i < out.steps.size(); ++i) {
    const PlanOut& plan = out.plans[i];
    std::size_t last = next;
    for (std::size_t d = next; d < out.decisions.size(); ++d) {
      const Decision& decision = out.decisions[d];
      if (decision.group == plan.group && decision.step && *decision.step <= plan.plan.step) {
        last = d + 1;
      }
    }
    for (; next < last; ++next) TakeDecision(out.decisions[next]);
    CheckPlan(plan, out.steps[i]);
    queue_.CountStep();
  }
  for (; next < out.decisions.size(); ++next) TakeDecision(out.decisions[next]);
}

void Checker::CheckPlan(const PlanOut& plan, const StepInfo& info) {
  const auto group = groups_.find(plan.group);
  if (group == groups_.end()) {
    return findings_.Add("G8", "a plan for " + Name(plan.group) + ", which is down");
  }
  for (const RequestId request : plan.requests) {
    if (!requests_.contains(request)) return findings_.Add("G2", "a start that never arrived");
  }
  group->second.CheckPlan(plan, info, requests_, used_ids_);
  // A refusal names no group, so it may belong to this plan or to a later one.
  const std::uint32_t own = waiting(true);
  if (info.waiting > own || info.waiting + refusals_left_ < own) {
    findings_.Add("G2", "StepInfo has " + std::to_string(info.waiting) + " waiting requests of " +
                            std::to_string(own));
  }
}

void Checker::TakeDecision(const Decision& decision) {
  const auto request = requests_.find(decision.request);
  if (request == requests_.end()) return findings_.Add("G2", "a decision about an unknown request");
  if (decision.kind == DecisionKind::kQueued) queue_.TakeQueued(request->second);
  if (decision.kind == DecisionKind::kRefused) {
    request->second.refused = true;
    queue_.shares().Leave(request->second);
    --refusals_left_;
  }
  if (decision.kind == DecisionKind::kAdmitted) TakeAdmission(decision, request->second);
  if (decision.kind == DecisionKind::kPreempted) TakePreemption(decision, request->second);
  losses_.TakeDecision(decision, request->second);
  if (decision.kind == DecisionKind::kDeferred) TakeDeferral(decision, request->second);
}

void Checker::TakeDeferral(const Decision& decision, Request& request) {
  const auto expect = [&](bool right, const char* what) {
    if (!right) findings_.Add("G4", Name(decision.request) + " is deferred " + what);
  };
  const Budget budget = decision.short_of;
  if (decision.group) {
    expect(request.state == State::kAdmitted && request.group == decision.group,
           "where it does not run");
    expect(!IsPromised(config_.admission, request), "though its length was promised");
    expect(budget == Budget::kBlocks || budget == Budget::kTotalTokens, "for no memory");
    return expect(decision.needed > 0, "for nothing");
  }
  expect(request.waiting(), "and does not wait");
  expect(decision.needed > decision.available, "though it has what it needs");
  expect((budget == Budget::kGroup) == groups_.empty(), "for a group");
  if (budget != Budget::kOrder && budget != Budget::kPrefix) return;
  if (budget == Budget::kOrder && !decision.behind) {
    return expect(config_.order == Order::kLongestPrefix, "and the request before it has no name");
  }
  const auto behind = requests_.find(decision.behind.value_or(RequestId(0)));
  if (behind == requests_.end()) return expect(false, "for an unknown request");
  if (budget == Budget::kOrder) return expect(behind->second.waiting(), "for one that left");
  const Request& owner = behind->second;
  expect(owner.state == State::kAdmitted, "for a prefix of one that does not run");
  expect(owner.arrival.tenant == request.arrival.tenant, "for a prefix of another tenant");
  expect(owner.arrival.adapter_id == request.arrival.adapter_id, "for one of another adapter");
  const auto& own = request.arrival.prompt;
  const std::size_t shared =
      std::min<std::size_t>({decision.needed, own.size(), owner.arrival.prompt.size()});
  expect(std::equal(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(shared),
                    owner.arrival.prompt.begin()),
         "for a prefix that it does not have");
}

// For a step, and for the whole input: each decision that an event requires was made once.
void Checker::CheckDecisionCounts(const Outputs& out) {
  losses_.CheckDecisions();
  std::size_t queued = 0, retired = 0, blocks = 0, finished = 0, refused = 0, ends = 0;
  for (const Decision& decision : out.decisions) {
    queued += decision.kind == DecisionKind::kQueued;
    finished += decision.kind == DecisionKind::kFinished;
    refused += decision.kind == DecisionKind::kRefused;
    if (decision.kind != DecisionKind::kRetired) continue;
    ++retired;
    blocks += decision.available;
  }
  for (const auto& event : out.events) {
    ends += std::holds_alternative<scheduler::Finished>(event.what) ||
            std::holds_alternative<scheduler::Failed>(event.what);
  }
  GroupModel::Reclaimed reclaimed;
  for (auto& [id, group] : groups_) {
    const GroupModel::Reclaimed of_group = group.TakeReclaimed();
    reclaimed.sequences += of_group.sequences;
    reclaimed.blocks += of_group.blocks;
  }
  const auto compare = [this](const char* what, std::size_t mine, std::size_t told) {
    if (mine == told) return;
    findings_.Add("G8", std::string(what) + ": " + std::to_string(mine) + " by the events, " +
                            std::to_string(told) + " by the decisions");
  };
  compare("requests queued", std::exchange(queued_, 0), queued);
  compare("requests finished", ends - refused, finished);
  compare("sequences retired", reclaimed.sequences, retired);
  compare("blocks retired", reclaimed.blocks, blocks);
}

void Checker::TakeAdmission(const Decision& decision, Request& request) {
  const auto group = groups_.find(decision.group.value_or(GroupId(UINT32_MAX)));
  if (group == groups_.end()) return findings_.Add("G8", "an admission to a group that is down");
  if (request.done()) findings_.Add("G8", Name(decision.request) + " is admitted after its end");
  // A batch of equal lengths may overtake others, but its first member may not.
  const bool equals = config_.batching == Batching::kStatic &&
                      config_.static_grouping == scheduler::StaticGrouping::kEqual;
  const bool in_turn = !equals || group->second.running() == 0;
  if (!request.restart()) queue_.shares().Admit(request, group->second, in_turn);
  if (in_turn) {
    queue_.CheckOrder(request, group->second);
    queue_.CountOvertakes(request, group->second);
  }
  for (const RequestId id : alive_) {
    Request& waits = requests_.at(id);
    const bool older = waits.place < request.place;
    const bool same = waits.arrival.account == request.arrival.account;
    if (!request.restart() && older && same) ++waits.passed;
  }
  request.due = !request.restart() && queue_.IsDue(request);
  request.at_start = request.received();
  queue_.CheckBatch(request, group->second, decision);
  losses_.TakeAdmission(request, group->second);
  group->second.Admit(request);
}

void Checker::TakePreemption(const Decision& decision, Request& request) {
  if (request.state != State::kAdmitted || decision.group != request.group) {
    return findings_.Add("G7", Name(decision.request) + " is preempted where it does not run");
  }
  ++preemptions_;
  GroupModel& group = groups_.at(*request.group);
  queue_.TakePreemption(decision, request, group);
  request.leaves = request.group;
  request.state = State::kPreempted;
  group.End(request);
  if (!request.sequence || group.Find(*request.sequence) == nullptr) Requeue(request);
}

void Checker::CheckStarted(const Outputs& out) {
  std::map<RequestId, const Started*> told;
  for (const auto& event : out.events) {
    if (const auto* started = std::get_if<Started>(&event.what)) told[event.request] = started;
  }
  for (const PlanOut& plan : out.plans) {
    for (std::size_t i = 0; i < plan.plan.starts.size() && i < plan.requests.size(); ++i) {
      const std::uint32_t cached = plan.plan.starts[i].cached_length;
      cached_tokens_ += cached;
      const auto it = told.find(plan.requests[i]);
      if (it == told.end()) {
        const auto request = requests_.find(plan.requests[i]);
        if (request != requests_.end() && request->second.ran()) continue;
        findings_.Add("G2", Name(plan.requests[i]) + " starts and is not told");
      } else {
        if (it->second->cached_tokens != cached) {
          findings_.Add("G2", Name(plan.requests[i]) + " is told another cached length");
        }
        told.erase(it);
      }
    }
  }
  for (const auto& [id, started] : told) findings_.Add("G2", Name(id) + " is told a false start");
}

// --- After each input

void Checker::CheckCounters(const Snapshot& state) {
  Snapshot own;
  for (const auto& [id, group] : groups_) {
    own.running += group.running();
    own.retiring += group.retiring();
    own.blocks_used += group.kv().used();
    own.blocks_retiring += group.kv().retiring();
    own.blocks_total += group.kv().total();
    own.window_blocks_used += group.window_kv().used();
    own.window_blocks_retiring += group.window_kv().retiring();
    own.window_blocks_total += group.window_kv().total();
    own.plans_in_flight += group.in_flight();
  }
  own.waiting = waiting(true);
  CompareCounters(own, state, findings_);
}

// G4. The core has made all plans that it could, so no sequence that could run may be left out.
void Checker::CheckProgress() {
  for (const auto& [id, group] : groups_) {
    if (group.in_flight() >= config_.pipeline_depth) continue;
    // Its decodes may wait for memory. A request waits for a prefix only until a plan computes it.
    const bool may_wait =
        config_.admission != AdmissionMode::kGuaranteed && !group.HasRoomForAll(requests_);
    if (may_wait && group.in_flight() > 0) continue;
    if (group.SomethingRunnable(requests_)) {
      findings_.Add("G4", Name(id) + " could compute something and has no plan for it");
    }
    CheckQueue(id, group);
  }
}

// The front of the group's queue with first-come order.
const RequestModel* Checker::FirstWaiting(const GroupModel& group) {
  const auto before = [this](const Request& a, const Request& b) {
    if (a.restart() != b.restart()) return a.restart();
    const auto turn_of_a = queue_.shares().TurnOf(a);
    const auto turn_of_b = queue_.shares().TurnOf(b);
    const bool same = a.restart() || turn_of_a == turn_of_b;
    return same ? a.order < b.order : turn_of_a < turn_of_b;
  };
  const Request* first = nullptr;
  for (const RequestId id : alive_) {
    const Request& request = requests_.at(id);
    if (!request.waiting() || !group.Fits(request)) continue;
    if (first == nullptr || before(request, *first)) first = &request;
  }
  return first;
}

void Checker::CheckQueue(GroupId id, const GroupModel& group) {
  const Request* first = FirstWaiting(group);
  if (first == nullptr) return;
  const bool plain = config_.order == Order::kFcfs && config_.prefill == Prefill::kChunked &&
                     config_.batching == Batching::kContinuous &&
                     config_.admission == AdmissionMode::kGuaranteed && groups_.size() == 1;
  if (plain && losses_.MayJoin(*first, group) && group.HasRoomFor(*first, requests_)) {
    return findings_.Add("G4", Name(first->arrival.request) + " could be admitted and waits");
  }
  if (group.running() > 0 || group.in_flight() > 0) return;
  for (const RequestId waits : alive_) {
    const Request& request = requests_.at(waits);
    if (!request.waiting() || !group.Fits(request)) continue;
    return findings_.Add("G4", Name(id) + " is idle and " + Name(waits) + ", which fits it, waits");
  }
}

void Checker::CheckWorstCases() {
  for (const auto& [id, group] : groups_) {
    const auto promise = [&, name = Name(id)](std::uint64_t worst, std::uint32_t total) {
      if (worst <= total) return;
      findings_.Add("G7", name + " has promised " + std::to_string(worst) + " blocks of " +
                              std::to_string(total));
    };
    const GroupModel::Blocks worst = group.WorstCase(requests_);
    promise(worst.in_full, group.kv().total());
    promise(worst.in_window, group.window_kv().total());
  }
}

void Checker::CheckEnd(const Snapshot& state) {
  for (const RequestId id : alive_) findings_.Add("G2", Name(id) + " never ends");
  for (const auto& [id, group] : groups_) {
    if (group.slots_taken() > 0) findings_.Add("G8", Name(id) + " is never told the last ends");
  }
  if (state.blocks_free + state.blocks_cached != state.blocks_total ||
      state.window_blocks_free + state.window_blocks_cached != state.window_blocks_total) {
    findings_.Add("G8", "blocks are held at the end");
  }
  if (state.running + state.waiting + state.retiring + state.plans_in_flight > 0) {
    findings_.Add("G4", "something is left at the end");
  }
}

}  // namespace penstock::sim
