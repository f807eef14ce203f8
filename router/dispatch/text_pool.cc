#include "router/dispatch/text_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/thread_name.h"

namespace penstock::router {
namespace {

// So many small jobs, 0.1 ms of work, are worth a wake-up, and a turn of a thread.
constexpr std::size_t kTurn = 32;

}  // namespace

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
    singles_.push_back(std::move(lane));
  }
  news_.notify_one();
}

void TextPool::ScheduleAll(Lanes& lanes) {
  if (lanes.empty()) return;
  const std::size_t turns = (lanes.size() + kTurn - 1) / kTurn;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return lanes.clear();
    std::move(lanes.begin(), lanes.end(), std::back_inserter(many_));
  }
  lanes.clear();
  for (std::size_t i = 0; i < std::min(turns, threads_.size()); ++i) news_.notify_one();
}

void TextPool::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    singles_.clear();
    many_.clear();
  }
  news_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void TextPool::Work() {
  NameThread("text");
  Lanes own;
  bool single_first = false;
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [this] { return stopping_ || !singles_.empty() || !many_.empty(); });
    if (stopping_) return;
    Take(own, std::exchange(single_first, !single_first));
    lock.unlock();
    Run(own);
    lock.lock();
    PutBack(own);
  }
}

// The two queues have turns, so that neither starves the other.
void TextPool::Take(Lanes& own, bool single_first) {
  if (!singles_.empty() && (single_first || many_.empty())) {
    own.push_back(std::move(singles_.front()));
    return singles_.pop_front();
  }
  const std::size_t share = (many_.size() + threads_.size() - 1) / threads_.size();
  for (std::size_t i = std::min(share, kTurn); i > 0; --i) {
    own.push_back(std::move(many_.front()));
    many_.pop_front();
  }
}

// Leaves those that have more to do. A lane may die here, and its sink with it: not under the lock.
void TextPool::Run(Lanes& own) {
  for (std::shared_ptr<Lane>& lane : own) {
    if (!lane->RunOnce()) lane.reset();
  }
  std::erase(own, nullptr);
}

void TextPool::PutBack(Lanes& own) {
  if (own.empty() || stopping_) return;
  std::move(own.begin(), own.end(), std::back_inserter(many_));
  own.clear();
}

}  // namespace penstock::router
