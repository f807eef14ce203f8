// grpc.health.v1.Health of a shard. (gRPC's own is on the callback API, see served_call.h.) The
// empty name is the server as a whole, which serves as soon as it answers.
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "grpc/health/v1/health.grpc.pb.h"
#include "shard/service/served_call.h"

namespace penstock::shard {

// Status by service name, and who watches it.
class HealthBoard {
 public:
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  class Watcher {
   public:
    virtual ~Watcher() = default;
    // The status of its service is another, or the board is closed. Under no lock of the board's.
    virtual void Changed() = 0;
  };

  void Set(const std::string& service, bool serving);
  // From now on nothing is watched.
  void Close();

  // SERVICE_UNKNOWN when nothing was set.
  Status Get(const std::string& service) const;
  bool closed() const;

  void Watch(const std::shared_ptr<Watcher>& watcher);
  void Unwatch(const std::shared_ptr<Watcher>& watcher);

 private:
  void TellAll();

  mutable std::mutex mutex_;
  std::map<std::string, Status> status_{{"", grpc::health::v1::HealthCheckResponse::SERVING}};
  std::set<std::shared_ptr<Watcher>> watchers_;
  bool closed_ = false;
};

class HealthService final : public ServedService {
 public:
  // `board` outlives the service.
  explicit HealthService(HealthBoard& board) : board_(board) {}

  grpc::Service& Registered() override { return service_; }
  void Listen(CallQueue& queue) override;

 private:
  HealthBoard& board_;
  grpc::health::v1::Health::AsyncService service_;
};

}  // namespace penstock::shard
