// A rank's gRPC server: the native service, a second driver's where one is given, health and
// reflection on one Unix socket or one TCP port with mutual TLS, with the engine behind it. Loading
// starts at once; Describe and WatchLoad answer meanwhile, and the health of each service turns
// SERVING when it has ended well.
//
// Threading: Start and Stop from one owner thread. `on_progress` is called on the model
// thread, then `on_loaded` once.
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
  // A plan holds the prompts that start in its step: 16 MiB beside the largest request body
  // (--payload-limit, 16 MiB unless it was raised).
  std::size_t max_receive_bytes = std::size_t{32} << 20;
  std::size_t max_send_bytes = std::size_t{64} << 20;
  SecondDriverFactory second_driver = nullptr;  // none: the native service alone
  std::function<void(const LoadStage&)> on_progress = [](const LoadStage&) {};
  std::function<void(const absl::Status&)> on_loaded = [](const absl::Status&) {};
};

class ShardServer {
 public:
  static absl::StatusOr<std::unique_ptr<ShardServer>> Start(std::unique_ptr<RankEngine> engine,
                                                            ShardServerOptions options);
  ~ShardServer();  // Stop

  // Interrupts the engine, ends all calls, joins the model thread, removes the socket. Idempotent.
  void Stop();

  // The socket's path, or host:port.
  const std::string& address() const;

 private:
  class Impl;
  explicit ShardServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::shard
