// The latest word on loading, for any number of watchers. Watchers that are slow skip to the newest
// word; nothing queues up.
//
// Thread-safe: the model thread writes, the thread of the calls watches.
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
  std::string error;  // not empty: loading failed, with `done`
};

class LoadMonitor {
 public:
  void Publish(LoadState state);

  // The newest state and its version, which grows with each Publish.
  std::pair<std::uint64_t, LoadState> Newest() const;

  // `wake` is called after each Publish, on its thread, under no lock of the board's; it must not
  // block. Returns the watcher's id. After Unwatch returned, one last call may still be running.
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
