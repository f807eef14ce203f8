#include "shard/service/watch_reactor.h"

#include <memory>
#include <mutex>

namespace penstock::shard {
namespace {

class WatchReactor final : public grpc::ServerWriteReactor<v1::LoadProgress>,
                           public std::enable_shared_from_this<WatchReactor> {
 public:
  explicit WatchReactor(LoadMonitor& monitor) : monitor_(monitor) {}

  void Start() {
    self_ = shared_from_this();
    id_ = monitor_.Watch([weak = weak_from_this()] {
      if (auto reactor = weak.lock()) reactor->Pump();
    });
    Pump();
  }

  void OnWriteDone(bool ok) override {
    {
      std::lock_guard lock(mutex_);
      writing_ = false;
      if (!ok) cancelled_ = true;
    }
    Pump();
  }

  void OnCancel() override {
    {
      std::lock_guard lock(mutex_);
      cancelled_ = true;
    }
    Pump();
  }

  void OnDone() override {
    monitor_.Unwatch(id_);
    self_.reset();
  }

 private:
  // Writes the newest state if it is new, or finishes. Any thread.
  void Pump() {
    const auto keep = shared_from_this();  // OnDone may come before the lock is released
    std::lock_guard lock(mutex_);
    if (writing_ || finished_) return;
    if (cancelled_ || last_written_) {
      finished_ = true;
      Finish(cancelled_ ? grpc::Status::CANCELLED : grpc::Status::OK);
      return;
    }
    const auto [version, state] = monitor_.Newest();
    if (version == version_) return;
    version_ = version;
    last_written_ = state.done;
    message_.set_stage(state.progress.stage);
    message_.set_bytes_done(state.progress.bytes_done);
    message_.set_bytes_total(state.progress.bytes_total);
    message_.set_bytes_per_second(state.progress.bytes_per_second);
    message_.set_eta_ms(static_cast<std::uint64_t>(state.progress.eta.count()));
    message_.set_done(state.done);
    message_.set_error(state.error);
    writing_ = true;
    StartWrite(&message_);
  }

  LoadMonitor& monitor_;
  std::uint64_t id_ = 0;
  std::shared_ptr<WatchReactor> self_;  // until OnDone
  std::mutex mutex_;
  v1::LoadProgress message_;
  std::uint64_t version_ = 0;
  bool writing_ = false;
  bool last_written_ = false;
  bool cancelled_ = false;
  bool finished_ = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::LoadProgress>* StartWatchLoad(LoadMonitor& monitor) {
  auto reactor = std::make_shared<WatchReactor>(monitor);
  reactor->Start();
  return reactor.get();
}

}  // namespace penstock::shard
