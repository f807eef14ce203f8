#include "shard/service/health_service.h"

#include <optional>
#include <utility>
#include <vector>

namespace penstock::shard {
namespace {

namespace health = grpc::health::v1;

using CheckCall = UnaryCall<health::HealthCheckRequest, health::HealthCheckResponse>;
using WatchBase = WriteCall<health::HealthCheckRequest, health::HealthCheckResponse>;

void Check(const HealthBoard& board, CheckCall& call) {
  const HealthBoard::Status status = board.Get(call.request().service());
  call.response().set_status(status);
  if (status == health::HealthCheckResponse::SERVICE_UNKNOWN) {
    call.Finish({grpc::StatusCode::NOT_FOUND, "service name unknown"});
  } else {
    call.Finish(grpc::Status::OK);
  }
}

// Writes the newest status whenever it is another than the last one written.
class WatchHealth final : public WatchBase,
                          public HealthBoard::Watcher,
                          public std::enable_shared_from_this<WatchHealth> {
 public:
  explicit WatchHealth(HealthBoard& board) : board_(board) {}

  void OnStart() override {
    board_.Watch(shared_from_this());
    Changed();
  }

  void Changed() override {
    const std::lock_guard lock(mutex_);
    Pump();
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    gone_ = gone_ || !ok;
    Pump();
  }

  void OnCancel() override {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    Pump();
  }

  void OnDone() override { board_.Unwatch(shared_from_this()); }

 private:
  void Pump() {
    if (writing_ || finished_) return;
    if (gone_ || board_.closed()) {
      finished_ = true;
      return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the shard is stopping"));
    }
    const HealthBoard::Status status = board_.Get(request().service());
    if (status == written_) return;
    written_ = status;
    message_.set_status(status);
    writing_ = true;
    StartWrite(message_);
  }

  HealthBoard& board_;
  std::mutex mutex_;
  health::HealthCheckResponse message_;
  std::optional<HealthBoard::Status> written_;
  bool writing_ = false;
  bool gone_ = false;
  bool finished_ = false;
};

}  // namespace

void HealthBoard::Set(const std::string& service, bool serving) {
  {
    const std::lock_guard lock(mutex_);
    status_[service] =
        serving ? health::HealthCheckResponse::SERVING : health::HealthCheckResponse::NOT_SERVING;
  }
  TellAll();
}

void HealthBoard::Close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  TellAll();
}

HealthBoard::Status HealthBoard::Get(const std::string& service) const {
  const std::lock_guard lock(mutex_);
  const auto found = status_.find(service);
  return found == status_.end() ? health::HealthCheckResponse::SERVICE_UNKNOWN : found->second;
}

bool HealthBoard::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void HealthBoard::Watch(const std::shared_ptr<Watcher>& watcher) {
  const std::lock_guard lock(mutex_);
  watchers_.insert(watcher);
}

void HealthBoard::Unwatch(const std::shared_ptr<Watcher>& watcher) {
  const std::lock_guard lock(mutex_);
  watchers_.erase(watcher);
}

void HealthBoard::TellAll() {
  std::vector<std::shared_ptr<Watcher>> watchers;
  {
    const std::lock_guard lock(mutex_);
    watchers.assign(watchers_.begin(), watchers_.end());
  }
  for (const auto& watcher : watchers) watcher->Changed();
}

void HealthService::Listen(CallQueue& queue) {
  using Service = health::Health::AsyncService;
  ServeUnary(service_, &Service::RequestCheck, queue, [this](auto& call) { Check(board_, call); });
  Serve<WatchBase>(service_, &Service::RequestWatch, queue,
                   [this] { return std::make_shared<WatchHealth>(board_); });
}

}  // namespace penstock::shard
