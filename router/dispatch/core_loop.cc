#include "router/dispatch/core_loop.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "common/log.h"
#include "common/status.h"
#include "common/time.h"
#include "router/dispatch/step_log.h"
#include "router/metrics/metrics.h"
#include "scheduler/input_log.h"
#include "scheduler/scheduler.h"

namespace penstock::router {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

SteadyTime ToSteady(Time time) { return SteadyTime(time.time_since_epoch()); }

}  // namespace

struct CoreLoop::Mailbox {
  std::mutex mutex;
  std::condition_variable news;
  std::deque<What> inputs;
  std::size_t arrivals = 0;  // among inputs
  std::unique_ptr<GroupLink> attached;
  bool stopping = false;
  std::thread thread;
};

struct CoreLoop::Core {
  explicit Core(const scheduler::Config& config) : scheduler(config) {}
  scheduler::Scheduler scheduler;
  scheduler::Outputs outputs;
  std::vector<scheduler::Event> events;
  std::vector<scheduler::Decision> decisions;
  std::optional<Time> wake_at;
  std::unique_ptr<GroupLink> link;
  std::optional<std::string> lost;  // until the listener has heard of it
  std::map<StepId, std::pair<Time, scheduler::StepInfo>> sent;  // plans in flight
};

struct CoreLoop::Logs {
  StepLog steps;
  std::ofstream inputs;
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
  if (!options_.input_log.empty()) {
    logs_->inputs.open(options_.input_log, std::ios::trunc | std::ios::binary);
    if (!logs_->inputs) {
      return BadValue("input-log", options_.input_log,
                      std::string("a writable file: ") + std::strerror(errno));
    }
    logs_->inputs << scheduler::EncodeLogHeader(options_.scheduler);
  }
  mailbox_->thread = std::thread([this] { Run(); });
  return absl::OkStatus();
}

void CoreLoop::Attach(std::unique_ptr<GroupLink> link) {
  const GroupFormed& formed = link->formed();
  scheduler::GroupUp up{GroupId(0), formed.epoch, formed.capacity, formed.calibration};
  {
    const std::lock_guard lock(mailbox_->mutex);
    mailbox_->attached = std::move(link);
    mailbox_->inputs.push_back(std::move(up));
  }
  mailbox_->news.notify_one();
}

bool CoreLoop::Post(What what) {
  const bool arrival = std::holds_alternative<scheduler::Arrival>(what);
  {
    const std::lock_guard lock(mailbox_->mutex);
    if (mailbox_->stopping) return false;
    if (arrival && mailbox_->arrivals >= options_.mailbox_arrivals) return false;
    mailbox_->arrivals += arrival ? 1 : 0;
    mailbox_->inputs.push_back(std::move(what));
  }
  mailbox_->news.notify_one();
  return true;
}

void CoreLoop::Stop() {
  {
    const std::lock_guard lock(mailbox_->mutex);
    mailbox_->stopping = true;
  }
  mailbox_->news.notify_one();
  if (mailbox_->thread.joinable()) mailbox_->thread.join();
  if (core_->link != nullptr) core_->link->Close();
  const std::lock_guard lock(mailbox_->mutex);
  if (mailbox_->attached != nullptr) mailbox_->attached->Close();
}

void CoreLoop::OnStepDone(StepResult result) {
  Post(scheduler::StepDone{GroupId(0), std::move(result)});
}

void CoreLoop::OnGroupLost(std::string reason) {
  Post(scheduler::GroupLost{GroupId(0), epoch_, std::move(reason)});
}

SteadyTime CoreLoop::NextDeadline() const {
  SteadyTime deadline = SteadyTime::max();
  if (core_->wake_at) deadline = ToSteady(*core_->wake_at);
  if (core_->link == nullptr) return deadline;
  if (const auto oldest = core_->link->OldestInFlight()) {
    deadline = std::min(deadline, ToSteady(*oldest) + options_.step_timeout);
  }
  return deadline;
}

void CoreLoop::Run() {
  std::unique_lock lock(mailbox_->mutex);
  while (!mailbox_->stopping) {
    const auto has_news = [this] { return mailbox_->stopping || !mailbox_->inputs.empty(); };
    const SteadyTime deadline = NextDeadline();
    if (deadline == SteadyTime::max()) {
      mailbox_->news.wait(lock, has_news);
    } else {
      mailbox_->news.wait_until(lock, deadline, has_news);
    }
    std::deque<What> inputs = std::exchange(mailbox_->inputs, {});
    mailbox_->arrivals = 0;
    if (mailbox_->attached != nullptr) core_->link = std::move(mailbox_->attached);
    lock.unlock();
    if (inputs.empty()) Apply(scheduler::Tick{});
    for (What& what : inputs) Apply(std::move(what));
    LoseHungGroup();
    Deliver();
    lock.lock();
  }
}

void CoreLoop::Apply(What what) {
  Core& core = *core_;
  const scheduler::Input input{SteadyNow(), std::move(what)};
  if (const auto* up = std::get_if<scheduler::GroupUp>(&input.what)) {
    epoch_ = up->epoch;
    core.link->Open(this);
  }
  // A second reason for the same loss (a hang, then its broken streams) is no news.
  const auto* lost = std::get_if<scheduler::GroupLost>(&input.what);
  if (lost != nullptr && core.link != nullptr && !core.lost) core.lost = lost->reason;
  if (const auto* done = std::get_if<scheduler::StepDone>(&input.what)) {
    CountResult(*done, input.now);
  }
  if (logs_->inputs.is_open()) logs_->inputs << scheduler::EncodeInput(input);

  core.outputs.Clear();
  core.scheduler.Apply(input, core.outputs);
  SendPlans(input.now);
  core.wake_at = core.outputs.wake_at;
  std::move(core.outputs.events.begin(), core.outputs.events.end(),
            std::back_inserter(core.events));
  std::move(core.outputs.decisions.begin(), core.outputs.decisions.end(),
            std::back_inserter(core.decisions));
}

void CoreLoop::CountResult(const scheduler::StepDone& done, Time now) {
  const auto found = core_->sent.find(done.result.step);
  if (found == core_->sent.end()) return;
  const auto& [sent, info] = found->second;
  metrics_.Step(now - sent, info.decode_rows, info.prefill_tokens);
  core_->sent.erase(found);
}

void CoreLoop::SendPlans(Time now) {
  for (std::size_t i = 0; i < core_->outputs.plans.size(); ++i) {
    const scheduler::StepInfo& info = core_->outputs.steps[i];
    core_->sent[info.step] = {now, info};
    core_->link->Send(core_->outputs.plans[i].plan);
    logs_->steps.Write(info);
  }
}

void CoreLoop::LoseHungGroup() {
  if (core_->link == nullptr) return;
  const auto oldest = core_->link->OldestInFlight();
  if (!oldest || SteadyNow() - *oldest < options_.step_timeout) return;
  std::string reason = core_->link->DescribeOldest() + " for " +
                       std::to_string(options_.step_timeout.count()) + " ms (--step-timeout)";
  Apply(scheduler::GroupLost{GroupId(0), epoch_, std::move(reason)});
}

void CoreLoop::Deliver() {
  Core& core = *core_;
  FlushInputLog();
  const scheduler::Snapshot now = core.scheduler.Inspect();
  metrics_.SetQueue(now.waiting, now.running);
  metrics_.SetBlocks(now.blocks_free, now.blocks_used, now.blocks_cached, now.blocks_retiring);
  if (!core.events.empty() || !core.decisions.empty()) {
    listener_.OnOutputs(std::exchange(core.events, {}), std::exchange(core.decisions, {}));
  }
  if (core.lost.has_value()) {
    core.sent.clear();
    core.link.reset();
    listener_.OnGroupLost(*std::exchange(core.lost, std::nullopt));
  }
}

// A recording with a gap is worth nothing, so the first write that fails ends it. Serving goes on.
void CoreLoop::FlushInputLog() {
  if (!logs_->inputs.is_open() || logs_->inputs.flush()) return;
  log::Warn("input-log " + options_.input_log + ": cannot be written any more, recording ends");
  logs_->inputs.close();
}

}  // namespace penstock::router
