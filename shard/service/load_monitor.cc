#include "shard/service/load_monitor.h"

#include <vector>

namespace penstock::shard {

void LoadMonitor::Publish(LoadState state) {
  std::vector<std::function<void()>> wakes;
  {
    std::lock_guard lock(mutex_);
    state_ = std::move(state);
    ++version_;
    for (const auto& [id, wake] : watchers_) wakes.push_back(wake);
  }
  for (const auto& wake : wakes) wake();
}

std::pair<std::uint64_t, LoadState> LoadMonitor::Newest() const {
  std::lock_guard lock(mutex_);
  return {version_, state_};
}

std::uint64_t LoadMonitor::Watch(std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  watchers_.emplace(++next_id_, std::move(wake));
  return next_id_;
}

void LoadMonitor::Unwatch(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  watchers_.erase(id);
}

}  // namespace penstock::shard
