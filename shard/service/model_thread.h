// The one thread that runs an engine, and its mailbox. Tasks run one at a time, in the order in
// which they were posted.
//
// Full: Post returns false and the service refuses the call. The service bounds what it posts (one
// formation call, one driver with few plans), so this is rare. The task that ends the lease of a
// driver has a place of its own.
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

  // Any thread. Returns false if the mailbox is full or closed.
  bool Post(std::function<void()> task);

  // The same for a task that must not be refused: it has one more place. The caller ensures that at
  // most one such task waits. Returns false if the mailbox is closed.
  bool PostEnd(std::function<void()> task);

  // Closes the mailbox, runs its tasks and joins the thread. Not to be called from that thread.
  void Stop();

 private:
  bool PostWithin(std::size_t most, std::function<void()> task);
  void Run();

  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> mailbox_;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace penstock::shard
