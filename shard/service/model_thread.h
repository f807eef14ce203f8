// The one thread that runs everything of an engine, and its inbox. Other threads post tasks; they
// run one by one, in order.
//
// Full: Post answers false and the caller refuses its call. The service bounds what it posts (one
// formation call, one driver with few plans), so that this is never the ordinary case.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace penstock::shard {

class ModelThread {
 public:
  explicit ModelThread(std::size_t capacity);
  ~ModelThread();
  ModelThread(const ModelThread&) = delete;
  ModelThread& operator=(const ModelThread&) = delete;

  // Any thread. False when the inbox is full or closed.
  bool Post(std::function<void()> task);

  // Closes the inbox, runs what it holds, joins. Not from the thread itself.
  void Stop();

 private:
  void Run();

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> inbox_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace penstock::shard
