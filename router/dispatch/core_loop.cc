#include "router/dispatch/core_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "common/bad_option.h"
#include "common/log.h"
#include "common/request/decision.h"
#include "common/status.h"
#include "common/thread_name.h"
#include "common/time.h"
#include "router/dispatch/execute_queue.h"
#include "router/dispatch/step_log.h"
#include "router/metrics/metrics.h"
#include "scheduler/log/input_log.h"
#include "scheduler/log/output_digest.h"
#include "scheduler/order/order_policy.h"
#include "scheduler/scheduler.h"

namespace penstock::router {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

BlockCounts BlocksOf(const scheduler::Snapshot& snapshot) {
  return {snapshot.blocks_free, snapshot.blocks_used, snapshot.blocks_cached,
          snapshot.blocks_retiring};
}

BlockCounts WindowBlocksOf(const scheduler::Snapshot& snapshot) {
  return {snapshot.window_blocks_free, snapshot.window_blocks_used, snapshot.window_blocks_cached,
          snapshot.window_blocks_retiring};
}

bool IsDue(std::optional<Time> time) { return time && *time <= SteadyNow(); }

}  // namespace

struct CoreLoop::Mailbox {
  std::mutex mutex;
  std::vector<What> inputs;
  std::size_t arrivals = 0;                          // among inputs
  std::vector<std::unique_ptr<GroupLink>> attached;  // their GroupUp is among inputs
  std::vector<std::function<void()>> after_plans;
  std::multimap<Time, What> later;
  bool waiting = false;  // the loop sleeps or is about to
  bool stopping = false;
  std::thread thread;
  // The loop sleeps here. Brings results; Wake ends the sleep for all else.
  std::shared_ptr<ExecuteQueue> results = std::make_shared<ExecuteQueue>();

  // Changes the mailbox and wakes the loop.
  template <class Change>
  void Put(Change change) {
    bool wake = false;
    {
      const std::lock_guard lock(mutex);
      change();
      wake = std::exchange(waiting, false) && !results->IsOwner();
    }
    if (wake) results->Wake();
  }
};

struct CoreLoop::Core {
  explicit Core(const scheduler::Config& config) : scheduler(config) {}
  scheduler::Scheduler scheduler;
  scheduler::Outputs outputs;
  std::vector<scheduler::Event> events;
  std::vector<Decision> decisions;
  std::vector<scheduler::PinChange> pins;
  std::array<std::uint32_t, kBudgets> waiting_for{};  // as the gauges show them
  std::vector<What> results;                          // of the groups, not yet applied
  struct Group {
    std::unique_ptr<GroupLink> link;
    std::map<StepId, std::pair<Time, scheduler::StepInfo>> sent;  // plans in flight
  };
  std::map<GroupId, Group> groups;                   // groups that are up
  std::vector<std::unique_ptr<GroupLink>> attached;  // not yet up
  std::vector<LostGroup> lost;                       // not yet reported to the listener
  struct AfterPlans {
    std::map<GroupId, StepId> newest;  // of the plans that must return
    std::function<void()> done;
  };
  std::vector<AfterPlans> after_plans;
};

struct CoreLoop::Logs {
  StepLog steps;
  std::ofstream inputs;

  void WriteUnanswered(const Core::Group& group) {
    for (const auto& [step, sent] : group.sent) steps.Write(sent.second, std::nullopt);
  }
};

CoreLoop::CoreLoop(CoreLoopOptions options, CoreListener& listener, Metrics& metrics)
    : options_(std::move(options)),
      listener_(listener),
      metrics_(metrics),
      mailbox_(std::make_unique<Mailbox>()),
      core_(std::make_unique<Core>(options_.scheduler)),
      logs_(std::make_unique<Logs>()) {}

CoreLoop::~CoreLoop() { Stop(); }

absl::Status CoreLoop::Start() {
  PENSTOCK_RETURN_IF_ERROR(logs_->steps.Open(options_.step_log));
  if (!options_.record.empty()) {
    logs_->inputs.open(options_.record, std::ios::trunc | std::ios::binary);
    if (!logs_->inputs) {
      return BadOption("record", options_.record,
                       std::string("a writable file: ") + std::strerror(errno));
    }
    logs_->inputs << scheduler::EncodeLogHeader(options_.scheduler);
  }
  mailbox_->thread = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void CoreLoop::Attach(std::unique_ptr<GroupLink> link) {
  const GroupFormed& formed = link->formed();
  scheduler::GroupUp up{formed.group, formed.epoch, formed.capacity, formed.calibration,
                        ArithmeticClassOf(formed)};
  mailbox_->Put([&] {
    mailbox_->attached.push_back(std::move(link));
    mailbox_->inputs.push_back(std::move(up));
  });
}

bool CoreLoop::Post(What what) {
  const bool arrival = std::holds_alternative<scheduler::Arrival>(what);
  bool taken = false;
  mailbox_->Put([&] {
    taken = !mailbox_->stopping && !(arrival && mailbox_->arrivals >= options_.mailbox_arrivals);
    if (!taken) return;
    mailbox_->arrivals += arrival ? 1 : 0;
    mailbox_->inputs.push_back(std::move(what));
  });
  return taken;
}

void CoreLoop::PostLater(Time at, What what) {
  const std::lock_guard lock(mailbox_->mutex);
  mailbox_->later.emplace(at, std::move(what));
}

// With the mailbox locked.
void CoreLoop::CollectLater(std::vector<What>& inputs) {
  std::multimap<Time, What>& later = mailbox_->later;
  const Time now = SteadyNow();
  while (!later.empty() && (later.begin()->first <= now || later.size() > kMostLater)) {
    inputs.push_back(std::move(later.begin()->second));
    later.erase(later.begin());
  }
}

void CoreLoop::AfterPlans(std::function<void()> done) {
  mailbox_->Put([&] { mailbox_->after_plans.push_back(std::move(done)); });
}

void CoreLoop::CallAfterPlans() {
  std::erase_if(core_->after_plans, [this](const Core::AfterPlans& after) {
    for (const auto& [id, newest] : after.newest) {
      const auto group = core_->groups.find(id);
      if (group == core_->groups.end() || group->second.sent.empty()) continue;
      if (group->second.sent.begin()->first <= newest) return false;
    }
    after.done();
    return true;
  });
}

void CoreLoop::Stop() {
  mailbox_->Put([&] { mailbox_->stopping = true; });
  if (mailbox_->thread.joinable()) mailbox_->thread.join();
}

void CoreLoop::OnStepDone(GroupId group, StepResult result) {
  core_->results.emplace_back(scheduler::StepDone{group, std::move(result)});
}

void CoreLoop::OnGroupLost(GroupId group, Epoch epoch, std::string reason, bool in_order) {
  core_->results.emplace_back(scheduler::GroupLost{group, epoch, std::move(reason), in_order});
}

SteadyTime CoreLoop::NextDeadline() const {
  SteadyTime deadline = SteadyTime::max();
  if (const auto held = listener_.HoldsUntil()) deadline = std::min(deadline, OnSteadyClock(*held));
  if (const auto due = core_->scheduler.NextDeadline()) {
    deadline = std::min(deadline, OnSteadyClock(*due));
  }
  if (const auto due = feed_.Due()) deadline = std::min(deadline, OnSteadyClock(*due));
  for (const auto& [id, group] : core_->groups) {
    if (const auto check = group.link->NextCheck()) {
      deadline = std::min(deadline, OnSteadyClock(*check));
    }
  }
  return deadline;
}

void CoreLoop::Run() {
  NameThread("scheduler");
  mailbox_->results->Own();
  std::vector<What> inputs;
  while (Collect(inputs)) {
    for (What& what : inputs) Apply(std::move(what));
    inputs.clear();
    if (IsDue(core_->scheduler.NextDeadline())) Apply(scheduler::Tick{});
    for (const auto& [id, group] : core_->groups) group.link->CheckRanks(SteadyNow());
    Deliver();
    CallAfterPlans();
  }
  for (const auto& [id, group] : core_->groups) logs_->WriteUnanswered(group);
  // This thread handles the ends of all streams, also of lost groups.
  for (auto& [id, group] : core_->groups) group.link->Close();
  mailbox_->results->DrainStreams();
}

// Sleeps until there are inputs or the next deadline has come. False: stop the loop.
bool CoreLoop::Collect(std::vector<What>& inputs) {
  Mailbox& box = *mailbox_;
  const SteadyTime deadline = NextDeadline();
  std::unique_lock lock(box.mutex);
  for (bool in_time = true; in_time && !box.stopping && box.inputs.empty() &&
                            core_->results.empty() && box.after_plans.empty();) {
    box.waiting = true;
    lock.unlock();
    in_time = box.results->Wait(deadline);
    lock.lock();
    box.waiting = false;
  }
  inputs.swap(box.inputs);
  CollectLater(inputs);
  std::ranges::move(core_->results, std::back_inserter(inputs));
  core_->results.clear();
  box.arrivals = 0;
  std::move(box.attached.begin(), box.attached.end(), std::back_inserter(core_->attached));
  box.attached.clear();
  for (std::function<void()>& done : std::exchange(box.after_plans, {})) {
    Core::AfterPlans& after = core_->after_plans.emplace_back();
    after.done = std::move(done);
    for (const auto& [id, group] : core_->groups) {
      if (!group.sent.empty()) after.newest[id] = group.sent.rbegin()->first;
    }
  }
  return !box.stopping;
}

void CoreLoop::Apply(What what) {
  Core& core = *core_;
  const scheduler::Input input{SteadyNow(), std::move(what)};
  if (const auto* up = std::get_if<scheduler::GroupUp>(&input.what)) Up(*up);
  if (const auto* lost = std::get_if<scheduler::GroupLost>(&input.what)) TakeOut(*lost);
  if (const auto* done = std::get_if<scheduler::StepDone>(&input.what)) {
    CountResult(*done, input.now);
  }
  // Written before it is applied, so that an input which crashes the core is in the record.
  if (logs_->inputs.is_open()) logs_->inputs << scheduler::EncodeInput(input) << std::flush;

  core.outputs.Clear();
  core.scheduler.Apply(input, core.outputs);
  SendPlans(input.now);
  listener_.OnApplied(input, core.outputs);
  if (logs_->inputs.is_open()) {
    logs_->inputs << scheduler::EncodeOutputDigest(scheduler::DigestOf(core.outputs));
  }
  if (core.events.empty()) {
    core.events.swap(core.outputs.events);
  } else {
    std::move(core.outputs.events.begin(), core.outputs.events.end(),
              std::back_inserter(core.events));
  }
  std::move(core.outputs.decisions.begin(), core.outputs.decisions.end(),
            std::back_inserter(core.decisions));
  core.pins.insert(core.pins.end(), core.outputs.pins.begin(), core.outputs.pins.end());
}

void CoreLoop::Up(const scheduler::GroupUp& up) {
  auto& attached = core_->attached;
  const auto mine = [&up](const auto& link) {
    return link->formed().group == up.group && link->formed().epoch == up.epoch;
  };
  const auto found = std::find_if(attached.begin(), attached.end(), mine);
  if (found == attached.end()) return;
  metrics_.groups().SetCacheSizes(up.group, CacheSizesOf((*found)->formed()));
  (*found)->Open(this, mailbox_->results, options_.step_timeout);
  core_->groups[up.group] = {std::move(*found), {}};
  attached.erase(found);
  metrics_.groups().SetUp(up.group, true);
  const std::string order = scheduler::DescribeOrder(options_.scheduler, up.capacity);
  if (options_.scheduler.order == scheduler::Order::kFcfs) {
    log::Debug(order);
  } else {
    log::Info(order);
  }
}

// The group may be gone already: its link reports the loss of its epoch once.
void CoreLoop::TakeOut(const scheduler::GroupLost& lost) {
  const auto found = core_->groups.find(lost.group);
  if (found == core_->groups.end()) return;
  if (found->second.link->formed().epoch != lost.epoch) return;
  found->second.link->Abandon();
  logs_->WriteUnanswered(found->second);
  core_->lost.push_back({lost.group, lost.reason, std::move(found->second.link)});
  core_->groups.erase(found);
  metrics_.groups().SetUp(lost.group, false);
  metrics_.groups().SetState(lost.group, 0, {});
}

void CoreLoop::CountResult(const scheduler::StepDone& done, Time now) {
  const auto group = core_->groups.find(done.group);
  if (group == core_->groups.end()) return;
  auto& all_sent = group->second.sent;
  const auto found = all_sent.find(done.result.step);
  if (found == all_sent.end()) return;
  const auto& [sent, info] = found->second;
  const StepTimings& timings = done.result.timings;
  const Duration taken = timings.forward + timings.sample;
  metrics_.steps().Prediction(info.predicted, taken);
  if (info.decode_parts > 0) {
    metrics_.steps().SetDecodeSplit(info.decode_parts, info.decode_cells, info.decode_tokens);
  }
  if (info.resplit) metrics_.steps().Resplit();
  metrics_.steps().KvCells(done.result.cells);
  const bool drafts = options_.scheduler.max_decode_rows > 1;
  for (const SequenceResult& sequence : done.result.sequences) {
    const auto forced = static_cast<std::uint64_t>(
        std::ranges::count(sequence.tokens, true, &SampledToken::forced));
    metrics_.steps().ForcedTokens(forced);
    if (drafts) metrics_.steps().SpeculatedTokens(sequence.tokens.size() - forced);
  }
  if (drafts) metrics_.steps().DraftedTokens(done.result.drafted);
  metrics_.steps().LateMasks(done.result.late_masks);
  logs_->steps.Write(info, taken);
  feed_.Done(info, taken);
  metrics_.steps().Step(now - sent, info.decode_rows, info.prefill_tokens);
  all_sent.erase(found);
}

void CoreLoop::SendPlans(Time now) {
  for (std::size_t i = 0; i < core_->outputs.plans.size(); ++i) {
    const scheduler::StepInfo& info = core_->outputs.steps[i];
    Core::Group& group = core_->groups.at(info.group);
    group.sent[info.step] = {now, info};
    metrics_.scheduler().PrefixCache(info.prefix.looked_up_tokens, info.prefix.hit_tokens,
                                     info.prefix.evicted_blocks);
    feed_.Sent(info, core_->outputs.plans[i].plan);
    group.link->Send(core_->outputs.plans[i].plan);
  }
}

void CoreLoop::ShowGauges() {
  const scheduler::Scheduler& scheduler = core_->scheduler;
  for (const auto& [id, group] : core_->groups) {
    const scheduler::Snapshot own = scheduler.InspectGroup(id);
    metrics_.groups().SetState(id, own.running, BlocksOf(own));
  }
  const scheduler::Snapshot all = scheduler.Inspect();
  metrics_.scheduler().SetQueue(all.waiting, all.running);
  for (std::size_t i = 0; i < all.waiting_for.size(); ++i) {
    if (std::exchange(core_->waiting_for[i], all.waiting_for[i]) == all.waiting_for[i]) continue;
    metrics_.scheduler().SetWaitingFor(BudgetName(static_cast<Budget>(i)), all.waiting_for[i]);
  }
  metrics_.scheduler().SetBlocks(BlocksOf(all));
  metrics_.scheduler().SetWindowBlocks(WindowBlocksOf(all));
}

void CoreLoop::Feed() {
  if (!IsDue(feed_.Due())) return;
  const scheduler::Snapshot all = core_->scheduler.Inspect();
  StepReport state;
  state.running = all.running;
  state.waiting = all.waiting;
  state.waiting_for = all.waiting_for;
  state.blocks_free = all.blocks_free;
  state.blocks_used = all.blocks_used;
  state.blocks_cached = all.blocks_cached;
  state.blocks_retiring = all.blocks_retiring;
  listener_.Describe(state);
  feed_.Report(std::move(state), SteadyNow());
}

void CoreLoop::CountDecisions() {
  std::array<std::uint64_t, kDecisionKinds> counts{};
  for (const Decision& decision : core_->decisions) {
    ++counts[static_cast<std::size_t>(decision.kind)];
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const auto kind = static_cast<DecisionKind>(i);
    metrics_.scheduler().Decisions(DecisionName(kind), counts[i]);
    if (kind == DecisionKind::kPreempted) metrics_.scheduler().Preempted(counts[i]);
    if (kind == DecisionKind::kAdmitted) {
      metrics_.scheduler().Admitted(scheduler::AdmissionName(options_.scheduler.admission),
                                    scheduler::OrderName(options_.scheduler.order), counts[i]);
    }
  }
}

void CoreLoop::Deliver() {
  Core& core = *core_;
  FlushRecord();
  ShowGauges();
  Feed();
  CountDecisions();
  if (!core.pins.empty()) listener_.OnPins(std::exchange(core.pins, {}));
  if (!core.events.empty() || !core.decisions.empty() || IsDue(listener_.HoldsUntil())) {
    listener_.OnOutputs(core.events, core.decisions);
    core.events.clear();
    core.decisions.clear();
  }
  for (LostGroup& lost : std::exchange(core.lost, {})) listener_.OnGroupLost(std::move(lost));
}

// A record with a gap cannot be replayed, so the first write that fails ends it.
void CoreLoop::FlushRecord() {
  if (!logs_->inputs.is_open() || logs_->inputs.flush()) return;
  log::Warn("--record " + options_.record + ": cannot be written; recording ends");
  logs_->inputs.close();
}

}  // namespace penstock::router
