// Looks through to the shards when somebody asks for the health of an idle server: one real
// generation of one token. A server that has work proves itself by its tokens, so load never sees a
// probe; and whoever asks while a probe runs waits for that one.
//
// Bounded: one probe at a time, at most `most_waiting` askers wait for it, none longer than
// `patience`; from then on the answer is "failed" until the probe comes back.
//
// Threads: any. Answers come from the caller's thread, the probe's own or that of the sink, without
// a lock held; they must not block.
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
  Duration idle{0};  // without a token for so long, a question is worth a probe; 0: never
  Duration patience = std::chrono::seconds(5);
  std::size_t most_waiting = 64;
};

class HealthProbe {
 public:
  using Answer = std::function<void(const HealthReport&)>;
  // Submits one generation of one token; not called with a lock held.
  using Submit = std::function<void(std::shared_ptr<GenerationSink>)>;

  HealthProbe(HealthProbeOptions options, Submit submit);
  ~HealthProbe();  // Stop
  HealthProbe(const HealthProbe&) = delete;
  HealthProbe& operator=(const HealthProbe&) = delete;

  // The shards have just computed something.
  void Used(Time now) { last_used_.store(now.time_since_epoch().count()); }

  // `report` is what is known without a probe, `busy` whether requests are open.
  void Ask(const HealthReport& report, bool busy, Answer answer);

  // Answers those who wait. Sinks must not be called any more.
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
  bool running_ = false;  // a probe is on its way
  bool stopping_ = false;
  Time began_;
  std::vector<Answer> waiting_;
  std::thread watcher_;  // sleeps unless a probe is on its way
};

}  // namespace penstock::router
