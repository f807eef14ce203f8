// The threads that render chat templates, tokenize and turn tokens back into text.
//
// Work comes as lanes: a Lane is one request, holds its own bounded mailbox and is on the pool's
// queue at most once, so the jobs of a request run one after another, in order, and the queue is
// bounded by the number of open requests. What piles up in a lane while it waits is done in one
// run. Idle threads sleep.
//
// Two queues: one for single jobs, of which any may be slow (a long prompt), and one for lanes that
// come many at a time with a little each (the events of a step). A thread takes several of the
// latter at once, and never has them wait behind one of the former.
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

class Lane {
 public:
  virtual ~Lane() = default;
  // On a thread of the pool, never twice at once: does all that has arrived. True: more came
  // meanwhile, and it goes to the end of the queue again.
  virtual bool RunOnce() = 0;
};

class TextPool {
 public:
  // Without threads nothing may be scheduled.
  explicit TextPool(std::uint32_t threads);
  ~TextPool();  // Stop
  TextPool(const TextPool&) = delete;
  TextPool& operator=(const TextPool&) = delete;

  // A lane that is on the queue or running already must not be scheduled again: the lane keeps that
  // count (see LaneState in request_task.h). After Stop nothing is taken.
  void Schedule(std::shared_ptr<Lane> lane);
  // The same for many at once, each with a little to do; `lanes` is empty afterwards.
  void ScheduleAll(std::vector<std::shared_ptr<Lane>>& lanes);

  // Lets what runs end, drops what waits, joins the threads.
  void Stop();

 private:
  using Lanes = std::vector<std::shared_ptr<Lane>>;

  void Work();
  void Take(Lanes& own, bool single_first);  // with the mutex held
  static void Run(Lanes& own);
  void PutBack(Lanes& own);  // with the mutex held

  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::shared_ptr<Lane>> singles_;
  std::deque<std::shared_ptr<Lane>> many_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace penstock::router
