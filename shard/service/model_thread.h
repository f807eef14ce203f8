// The one thread that runs everything of an engine, and its inbox. Other threads post tasks; they
// run one by one, in order.
//
// Full: Post answers false and the caller refuses its call. The service bounds what it posts (one
// formation call, one driver with few plans), so that this is never the ordinary case. The end of a
// driver, which gives up its seat, has a place of its own.
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

  // The same for a task that must not be refused: it finds room though the inbox is full. At most
  // one may wait at a time, which is for the caller to see to. False when the inbox is closed.
  bool PostEnd(std::function<void()> task);

  // Closes the inbox, runs what it holds, joins. Not from the thread itself.
  void Stop();

 private:
  bool PostWithin(std::size_t most, std::function<void()> task);
  void Run();

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> inbox_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace penstock::shard
