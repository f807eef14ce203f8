// A second gRPC driver beside the native service: on the same socket, the same model thread and the
// same engine. ShardServer makes it with the state of its rank and registers its services.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shard/service/shard_listen.h"

namespace grpc {
class CompletionQueue;
}  // namespace grpc

namespace penstock::shard {

class ServedService;
struct ServiceState;

// Tasks that a second driver may have in the model thread's inbox at once.
inline constexpr std::size_t kMaxSecondCalls = 16;

class SecondDriver {
 public:
  virtual ~SecondDriver() = default;

  // Lives as long as the driver.
  struct NamedService {
    std::string name;  // for the health service; empty = not shown there
    ServedService* service = nullptr;
  };
  virtual std::vector<NamedService> Services() = 0;

  // Before the first call comes: `calls`, whose thread runs what ends in it until Stop has
  // returned, is also there for streams of the driver to other ranks.
  virtual void Start(grpc::CompletionQueue& calls) = 0;

  // The server is about to stop: what waits for something else than the model thread ends now.
  virtual void Stop() = 0;
};

// `state` outlives the driver.
using SecondDriverFactory =
    std::function<std::unique_ptr<SecondDriver>(ServiceState& state, const ListenAddress& listen)>;

}  // namespace penstock::shard
