// The progress of loading, for any number of watchers. A slow watcher skips to the newest state, so
// there is no queue.
//
// Thread-safe: the model thread publishes, gRPC threads watch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "shard/service/rank_engine.h"

namespace penstock::shard {

struct LoadState {
  LoadStage progress;
  bool done = false;
  std::string error;  // not empty: loading failed; `done` is set
};

class LoadMonitor {
 public:
  void Publish(LoadState state);

  // The newest state and its version. Each Publish increases the version.
  std::pair<std::uint64_t, LoadState> Newest() const;

  // Calls `wake` after each Publish, on the thread of the latter and without a lock; it must not
  // block. Returns the id of the watcher. One last call may still run after Unwatch has returned.
  std::uint64_t Watch(std::function<void()> wake);
  void Unwatch(std::uint64_t id);

 private:
  mutable std::mutex mutex_;
  std::uint64_t version_ = 1;
  LoadState state_;
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, std::function<void()>> watchers_;
};

}  // namespace penstock::shard
