#include "router/dispatch/text_pool.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/thread_name.h"

namespace penstock::router {
namespace {

// Strands with little to do that one thread takes at once: about 0.1 ms of work, which is worth
// waking a thread.
constexpr std::size_t kTurn = 32;

}  // namespace

TextPool::TextPool(std::uint32_t threads) {
  for (std::uint32_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { Work(); });
  }
}

TextPool::~TextPool() { Stop(); }

void TextPool::Schedule(std::shared_ptr<Strand> strand) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    singles_.push_back(std::move(strand));
  }
  news_.notify_one();
}

void TextPool::ScheduleAll(Strands& strands) {
  if (strands.empty()) return;
  const std::size_t turns = (strands.size() + kTurn - 1) / kTurn;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return strands.clear();
    std::move(strands.begin(), strands.end(), std::back_inserter(many_));
  }
  strands.clear();
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
  Strands own;
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

void TextPool::Take(Strands& own, bool single_first) {
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

// Leaves the strands that have more to do. Runs without the lock, since it may destroy a strand and
// its sink.
void TextPool::Run(Strands& own) {
  for (std::shared_ptr<Strand>& strand : own) {
    if (!strand->RunOnce()) strand.reset();
  }
  std::erase(own, nullptr);
}

void TextPool::PutBack(Strands& own) {
  if (own.empty() || stopping_) return;
  std::move(own.begin(), own.end(), std::back_inserter(many_));
  own.clear();
}

}  // namespace penstock::router
