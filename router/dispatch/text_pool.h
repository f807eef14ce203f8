// The threads that render chat templates, tokenize, and turn tokens into text.
//
// A Strand is a queue whose tasks run one at a time, in order; each request is one. A strand bounds
// its own queue and is in the pool at most once, so open requests bound the pool's queues. One run
// of a strand handles everything that has arrived. Idle threads sleep.
//
// The pool has two queues: one for single tasks, which may be slow (a long prompt), and one for
// strands that come many at a time with little to do (the events of a step). A thread takes several
// of the latter at once. The queues alternate, so that neither starves the other.
//
// Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::router {

class Strand {
 public:
  virtual ~Strand() = default;
  // Handles everything that has arrived. Runs on a thread of the pool, on one at a time. True: more
  // has arrived meanwhile, and the pool queues the strand again.
  virtual bool RunOnce() = 0;
};

class TextPool {
 public:
  // With 0 threads nothing may be scheduled.
  explicit TextPool(std::uint32_t threads);
  ~TextPool();  // Stop
  TextPool(const TextPool&) = delete;
  TextPool& operator=(const TextPool&) = delete;

  // The strand must be neither queued nor running: it keeps track of that itself
  // (RequestTask::scheduled_). Does nothing after Stop.
  void Schedule(std::shared_ptr<Strand> strand);
  // The same for many strands that each have little to do. Clears `strands`.
  void ScheduleAll(std::vector<std::shared_ptr<Strand>>& strands);

  // Waits for the strands that run and drops those that wait.
  void Stop();

 private:
  using Strands = std::vector<std::shared_ptr<Strand>>;

  void Work();
  void Take(Strands& own, bool single_first);  // with the mutex held
  static void Run(Strands& own);
  void PutBack(Strands& own);  // with the mutex held

  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::shared_ptr<Strand>> singles_;
  std::deque<std::shared_ptr<Strand>> many_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::router
