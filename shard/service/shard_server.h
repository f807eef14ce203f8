// The gRPC server of a rank, on one Unix socket or one TCP port with mutual TLS. It serves the
// native service, the services of a second driver if there is one, health and reflection.
//
// Loading starts at once; Describe and WatchLoad answer meanwhile. After a successful load the
// health of each service becomes SERVING.
//
// Threading: Start and Stop from one thread. `on_progress` and then, once, `on_loaded` are called
// on the model thread.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "shard/service/rank_engine.h"
#include "shard/service/second_driver.h"
#include "shard/service/shard_listen.h"

namespace penstock::shard {

struct ShardServerOptions {
  ListenAddress listen;
  std::uint32_t rank = 0;
  // A plan has the prompts that start in its step: 16 MiB more than the default of --payload-limit.
  std::size_t max_receive_bytes = std::size_t{32} << 20;
  std::size_t max_send_bytes = std::size_t{64} << 20;
  SecondDriverFactory second_driver = nullptr;  // none: only the native service
  std::function<void(const LoadStage&)> on_progress = [](const LoadStage&) {};
  std::function<void(const absl::Status&)> on_loaded = [](const absl::Status&) {};
};

class ShardServer {
 public:
  static absl::StatusOr<std::unique_ptr<ShardServer>> Start(std::unique_ptr<RankEngine> engine,
                                                            ShardServerOptions options);
  ~ShardServer();  // Stop

  // Interrupts the engine, ends all calls, joins the model thread and removes the socket. May be
  // called again.
  void Stop();

  // The socket's path, or host:port.
  const std::string& address() const;

 private:
  class Impl;
  explicit ShardServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::shard
