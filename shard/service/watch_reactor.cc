#include "shard/service/watch_reactor.h"

#include <memory>
#include <mutex>

namespace penstock::shard {
namespace {

using Reactor = WriteCall<v1::WatchLoadRequest, v1::LoadProgress>;

class WatchReactor final : public Reactor, public std::enable_shared_from_this<WatchReactor> {
 public:
  explicit WatchReactor(LoadMonitor& board) : board_(board) {}

  void OnStart() override {
    id_ = board_.Watch([weak = weak_from_this()] {
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

  void OnDone() override { board_.Unwatch(id_); }

 private:
  // Writes what is new, or finishes. Any thread.
  void Pump() {
    const auto keep = shared_from_this();  // OnDone may come before the lock is free again
    std::lock_guard lock(mutex_);
    if (writing_ || finished_) return;
    if (cancelled_ || last_written_) {
      finished_ = true;
      Finish(cancelled_ ? grpc::Status::CANCELLED : grpc::Status::OK);
      return;
    }
    const auto [version, state] = board_.Newest();
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
    StartWrite(message_);
  }

  LoadMonitor& board_;
  std::uint64_t id_ = 0;
  std::mutex mutex_;
  v1::LoadProgress message_;
  std::uint64_t version_ = 0;
  bool writing_ = false;
  bool last_written_ = false;
  bool cancelled_ = false;
  bool finished_ = false;
};

}  // namespace

std::shared_ptr<Reactor> MakeWatchLoad(LoadMonitor& board) {
  return std::make_shared<WatchReactor>(board);
}

}  // namespace penstock::shard
