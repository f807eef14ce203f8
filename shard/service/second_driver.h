// A second gRPC driver beside the native service: on the same socket, the same model thread and the
// same engine. ShardServer creates it with the state of its rank and registers its services.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shard/service/shard_listen.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace penstock::shard {

struct ServiceState;

// Most tasks that a second driver may have in the mailbox of the model thread.
inline constexpr std::size_t kMaxSecondCalls = 16;

class SecondDriver {
 public:
  virtual ~SecondDriver() = default;

  // Lives as long as the driver.
  struct NamedService {
    std::string name;  // for the health service; empty: not shown there
    grpc::Service* service = nullptr;
  };
  virtual std::vector<NamedService> Services() = 0;

  // The server is about to stop. Calls that wait for anything but the model thread must end now.
  virtual void Stop() = 0;
};

// `state` outlives the driver.
using SecondDriverFactory =
    std::function<std::unique_ptr<SecondDriver>(ServiceState& state, const ListenAddress& listen)>;

}  // namespace penstock::shard
