#include "router/dispatch/text_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace penstock::router {

TextPool::TextPool(std::uint32_t threads) {
  for (std::uint32_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Work(); });
  }
}

TextPool::~TextPool() { Stop(); }

void TextPool::Schedule(std::shared_ptr<Lane> lane) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    queue_.push_back(std::move(lane));
  }
  news_.notify_one();
}

void TextPool::ScheduleAll(std::vector<std::shared_ptr<Lane>> lanes) {
  if (lanes.empty()) return;
  const bool many = lanes.size() > 1;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    std::move(lanes.begin(), lanes.end(), std::back_inserter(queue_));
  }
  if (many) {
    news_.notify_all();
  } else {
    news_.notify_one();
  }
}

void TextPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  news_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void TextPool::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    std::shared_ptr<Lane> lane = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    // The lane may die here, and its sink with it: not under the lock.
    if (!lane->RunOnce()) lane.reset();
    lock.lock();
    if (lane == nullptr) continue;
    if (stopping_) return lock.unlock();
    queue_.push_back(std::move(lane));
  }
}

}  // namespace penstock::router
