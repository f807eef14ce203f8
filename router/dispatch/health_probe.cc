#include "router/dispatch/health_probe.h"

#include <utility>

namespace penstock::router {
// The service drops it in Stop at the latest.
class HealthProbe::Sink final : public GenerationSink {
 public:
  explicit Sink(HealthProbe& probe) : probe_(probe) {}

  bool OnEvents(std::vector<GenerationEvent> events) override {
    const GenerationEvent& last = events.back();
    if (std::holds_alternative<GenerationEnd>(last)) {
      probe_.Used(SteadyNow());
      probe_.Finish({Health::kReady, ""});
    } else if (const auto* error = std::get_if<GenerationError>(&last)) {
      probe_.Finish({Health::kFailed, "the probe failed: " + error->message});
    }
    return true;
  }

 private:
  HealthProbe& probe_;
};

HealthProbe::HealthProbe(HealthProbeOptions options, Submit submit)
    : options_(options),
      submit_(std::move(submit)),
      last_used_(SteadyNow().time_since_epoch().count()) {
  if (options_.idle > Duration(0)) watcher_ = std::thread([this] { Watch(); });
}

HealthProbe::~HealthProbe() { Stop(); }

bool HealthProbe::NeedsProbe(const HealthReport& report, bool busy, Time now) const {
  if (options_.idle <= Duration(0) || report.state != Health::kReady || busy) return false;
  return now.time_since_epoch() - Duration(last_used_.load()) >= options_.idle;
}

void HealthProbe::Ask(const HealthReport& report, bool busy, Answer answer) {
  const Time now = SteadyNow();
  std::unique_lock lock(mutex_);
  if (running_ && report.state == Health::kReady) {
    if (now - began_ < options_.patience && waiting_.size() < options_.most_waiting) {
      waiting_.push_back(std::move(answer));
      return;
    }
    lock.unlock();
    return answer({Health::kFailed, "the shards do not answer a probe"});
  }
  if (stopping_ || !NeedsProbe(report, busy, now)) {
    lock.unlock();
    return answer(report);
  }
  running_ = true;
  began_ = now;
  waiting_.push_back(std::move(answer));
  lock.unlock();
  changed_.notify_all();
  submit_(std::make_shared<Sink>(*this));
}

void HealthProbe::AnswerAll(std::unique_lock<std::mutex>& lock, const HealthReport& outcome) {
  const std::vector<Answer> waiting = std::exchange(waiting_, {});
  lock.unlock();
  for (const Answer& answer : waiting) answer(outcome);
  lock.lock();
}

void HealthProbe::Finish(const HealthReport& outcome) {
  std::unique_lock lock(mutex_);
  running_ = false;
  AnswerAll(lock, outcome);
  changed_.notify_all();
}

void HealthProbe::Watch() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    changed_.wait(lock, [this] { return stopping_ || (running_ && !waiting_.empty()); });
    const Time began = began_;
    const auto over = [&] { return stopping_ || !running_ || began_ != began; };
    if (changed_.wait_until(lock, OnSteadyClock(began + options_.patience), over)) continue;
    AnswerAll(lock, {Health::kFailed, "the shards do not answer a probe"});
  }
}

void HealthProbe::Stop() {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    AnswerAll(lock, {Health::kDraining, "the server is shutting down"});
  }
  changed_.notify_all();
  if (watcher_.joinable()) watcher_.join();
}

}  // namespace penstock::router
