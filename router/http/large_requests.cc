#include "router/http/large_requests.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "common/log.h"
#include "common/thread_name.h"
#include "common/thread_priority.h"

namespace penstock::router {
namespace {

constexpr unsigned kMostThreads = 4;

void Handle(LargeRequests::Work work) {
  if (work.exchange->IsGone()) return;
  work.memory.reset();  // the connection holds its own reservation until the answer is sent
  try {
    work.handle(std::move(work.request), MakeExchange(std::move(work.exchange)));
  } catch (const std::exception& failure) {  // out of memory: its client gets a 500
    log::Error("a large request failed: " + std::string(failure.what()));
  }
}

}  // namespace

LargeRequests::LargeRequests() {
  const unsigned half = std::thread::hardware_concurrency() / 2;
  for (unsigned i = 0; i < std::clamp(half, 1U, kMostThreads); ++i) {
    threads_.emplace_back([this] { Run(); });
  }
}

LargeRequests::~LargeRequests() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  news_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void LargeRequests::Add(Work work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  news_.notify_one();
}

void LargeRequests::Run() {
  NameThread("large");
  UseBackgroundPriority();
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Work work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    Handle(std::move(work));
    lock.lock();
  }
}

}  // namespace penstock::router
