#include "shard/service/served_call.h"

#include <utility>

namespace penstock::shard {

void ServedCall::Expect(CallQueue& queue, std::shared_ptr<ServedCall> self,
                        std::function<void()> again) {
  queue_ = &queue;
  queue_->Keep(std::move(self));
  again_ = std::move(again);
}

void ServedCall::WatchForCancel() { context_.AsyncNotifyWhenDone(Begin(closed_)); }

void* ServedCall::Begin(Step& step) {
  ++under_way_;
  return &step;
}

// Not ok: the server stops. Then no call has come, and closed_ will not, either.
void ServedCall::Arrived(bool ok) {
  if (!ok) {
    queue_->Release(this);
    return;
  }
  std::exchange(again_, nullptr)();
  OnStart();
}

void ServedCall::ReadEnded(bool ok) {
  OnReadDone(ok);
  Leave();
}

void ServedCall::WriteEnded(bool ok) {
  OnWriteDone(ok);
  Leave();
}

void ServedCall::Ended(bool) { Leave(); }

void ServedCall::Closed(bool) {
  if (context_.IsCancelled()) OnCancel();
  Leave();
}

void ServedCall::Leave() {
  if (--under_way_ > 0) return;
  const std::shared_ptr<ServedCall> self = queue_->Release(this);
  OnDone();
}

}  // namespace penstock::shard
