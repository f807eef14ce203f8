#include "shard/service/model_thread.h"

#include <utility>

namespace penstock::shard {

ModelThread::ModelThread(std::size_t capacity) : capacity_(capacity), thread_([this] { Run(); }) {}

ModelThread::~ModelThread() { Stop(); }

bool ModelThread::Post(std::function<void()> task) {
  return PostWithin(capacity_, std::move(task));
}

bool ModelThread::PostEnd(std::function<void()> task) {
  return PostWithin(capacity_ + 1, std::move(task));
}

bool ModelThread::PostWithin(std::size_t most, std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    if (closed_ || mailbox_.size() >= most) return false;
    mailbox_.push_back(std::move(task));
  }
  changed_.notify_one();
  return true;
}

void ModelThread::Stop() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ModelThread::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closed_ || !mailbox_.empty(); });
    if (mailbox_.empty()) return;
    std::function<void()> task = std::move(mailbox_.front());
    mailbox_.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // destroyed without the lock
    lock.lock();
  }
}

}  // namespace penstock::shard
