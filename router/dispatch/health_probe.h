// Checks the shards of an idle server when a client asks for its health: it generates one token. A
// server that has work is never probed, since its tokens show that it is healthy.
//
// One probe runs at a time, and questions that come meanwhile wait for it: at most `most_waiting`,
// none longer than `patience`. After that the answer is "failed" until the probe ends.
//
// Thread-safe. Answers come from the caller's thread, the probe's or the sink's, without a lock
// held. They must not block.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/time.h"
#include "router/engine.h"

namespace penstock::router {

struct HealthProbeOptions {
  Duration idle{0};  // probe after this time without a token; 0: never
  Duration patience = std::chrono::seconds(5);
  std::size_t most_waiting = 64;
};

class HealthProbe {
 public:
  using Answer = std::function<void(const HealthReport&)>;
  // Submits one generation of one token. No lock is held.
  using Submit = std::function<void(std::shared_ptr<GenerationSink>)>;

  HealthProbe(HealthProbeOptions options, Submit submit);
  ~HealthProbe();  // Stop
  HealthProbe(const HealthProbe&) = delete;
  HealthProbe& operator=(const HealthProbe&) = delete;

  // The shards have computed something at this time.
  void Used(Time now) { last_used_.store(now.time_since_epoch().count()); }

  // `report`: the health as known without a probe. `busy`: requests are open.
  void Ask(const HealthReport& report, bool busy, Answer answer);

  // Answers all waiting questions. No sink may be called afterwards.
  void Stop();

 private:
  class Sink;

  bool NeedsProbe(const HealthReport& report, bool busy, Time now) const;
  void Finish(const HealthReport& outcome);
  void AnswerAll(std::unique_lock<std::mutex>& lock, const HealthReport& outcome);
  void Watch();

  const HealthProbeOptions options_;
  const Submit submit_;
  std::atomic<Time::rep> last_used_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;  // a probe is in flight
  bool stopping_ = false;
  Time began_;
  std::vector<Answer> waiting_;
  std::thread watcher_;  // sleeps unless a probe is in flight
};

}  // namespace penstock::router
