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
#include <grpcpp/server.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shard/service/rank_engine.h"
#include "shard/service/second_driver.h"
#include "shard/service/shard_listen.h"
#include "shard/service/shard_service.h"

namespace penstock::shard {

struct ShardServerOptions {
  ListenAddress listen;
  SecondDriverFactory second_driver = nullptr;  // none: only the native service
  std::function<void(const v1::LoadProgress&)> on_progress = [](const v1::LoadProgress&) {};
  std::function<void(const absl::Status&)> on_loaded = [](const absl::Status&) {};
};

class ShardServer {
 public:
  static absl::StatusOr<std::unique_ptr<ShardServer>> Start(std::unique_ptr<RankEngine> engine,
                                                            ShardServerOptions options);
  ~ShardServer();  // Stop

  // Interrupts the engine, removes the socket, ends all calls and joins the model thread. May be
  // called again.
  void Stop();

  // The socket's path, or host:port.
  const std::string& address() const { return address_; }

 private:
  ShardServer(std::unique_ptr<RankEngine> engine, ShardServerOptions options);
  bool on_tcp() const { return !options_.listen.tcp.empty(); }
  std::shared_ptr<grpc::ServerCredentials> Credentials() const;
  absl::Status Listen();
  void RemoveSocket();
  void SetHealth(bool serving);
  void Load();

  const std::unique_ptr<RankEngine> engine_;
  const ShardServerOptions options_;
  ServiceState state_;
  ShardService service_;
  std::unique_ptr<SecondDriver> second_;
  std::vector<std::string> health_names_;
  std::string address_;
  bool made_directory_ = false;
  std::unique_ptr<grpc::Server> server_;
  bool stopped_ = false;
};

}  // namespace penstock::shard
