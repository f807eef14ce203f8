#include "shard/service/load_monitor.h"

namespace penstock::shard {

class LoadMonitor::Stream final : public grpc::ServerWriteReactor<v1::LoadProgress> {
 public:
  explicit Stream(LoadMonitor& monitor) : monitor_(monitor) {}

  // Writes the newest state if it is new, or finishes. Under the mutex of the monitor.
  void Pump() {
    if (writing_ || finished_) return;
    if (cancelled_ || message_.done()) {
      finished_ = true;
      Finish(cancelled_ ? grpc::Status::CANCELLED : grpc::Status::OK);
    } else if (version_ != monitor_.version_) {
      version_ = monitor_.version_;
      message_ = monitor_.newest_;
      writing_ = true;
      StartWrite(&message_);
    }
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(monitor_.mutex_);
    writing_ = false;
    cancelled_ = cancelled_ || !ok;
    Pump();
  }

  void OnCancel() override {
    const std::lock_guard lock(monitor_.mutex_);
    cancelled_ = true;
    Pump();
  }

  void OnDone() override {
    {
      const std::lock_guard lock(monitor_.mutex_);
      monitor_.streams_.erase(this);
    }
    delete this;
  }

 private:
  LoadMonitor& monitor_;
  v1::LoadProgress message_;   // written last
  std::uint64_t version_ = 0;  // of message_
  bool writing_ = false;
  bool cancelled_ = false;
  bool finished_ = false;
};

void LoadMonitor::Publish(const v1::LoadProgress& progress) {
  const std::lock_guard lock(mutex_);
  newest_ = progress;
  ++version_;
  for (Stream* stream : streams_) stream->Pump();
}

grpc::ServerWriteReactor<v1::LoadProgress>* LoadMonitor::Watch() {
  auto* stream = new Stream(*this);
  const std::lock_guard lock(mutex_);
  streams_.insert(stream);
  stream->Pump();
  return stream;
}

}  // namespace penstock::shard
