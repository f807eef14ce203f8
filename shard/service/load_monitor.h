// The progress of loading, and the WatchLoad streams that report it. A stream writes the newest
// state after each change and ends after the last one. A slow stream skips states, so there is no
// queue.
//
// Thread-safe: the model thread publishes, gRPC threads watch.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <cstdint>
#include <mutex>
#include <set>

#include "penstock/v1/shard.pb.h"

namespace penstock::shard {

// Outlives the streams.
class LoadMonitor {
 public:
  // `done` is set in the last state; `error` is then not empty if loading failed.
  void Publish(const v1::LoadProgress& progress);

  // The reactor owns itself until gRPC no longer uses it.
  grpc::ServerWriteReactor<v1::LoadProgress>* Watch();

 private:
  class Stream;

  std::mutex mutex_;
  v1::LoadProgress newest_;
  std::uint64_t version_ = 1;  // of newest_
  std::set<Stream*> streams_;
};

}  // namespace penstock::shard
