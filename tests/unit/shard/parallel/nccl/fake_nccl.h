// A fake NCCL and a fake device stream. A test decides whether collectives end at once, hang or
// fail.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "shard/parallel/device_queue.h"
#include "shard/parallel/nccl/nccl_api.h"

namespace penstock::shard {

// Until Hang() every mark is done when it is recorded.
class FakeQueue final : public DeviceQueue {
 public:
  void Hang() { hanging_ = true; }
  void Release() { hanging_ = false; }

  absl::StatusOr<Mark> Record() override {
    if (!hanging_) done_ = recorded_ + 1;
    return ++recorded_;
  }
  absl::StatusOr<bool> Done(Mark mark) override { return !hanging_ || mark <= done_; }
  void* NativeStream() override { return this; }

 private:
  std::atomic<bool> hanging_ = false;
  std::atomic<Mark> recorded_ = 0;
  std::atomic<Mark> done_ = 0;
};

// Always a single rank. `in_progress` is how often kInProgress is answered after a call.
class FakeNccl final : public NcclApi {
 public:
  int in_progress = 0;
  bool never_ready = false;
  std::string error_now;  // of the next call
  int joined = 0;
  std::atomic<int> aborted = 0;
  std::atomic<int> destroyed = 0;
  std::vector<std::string> calls;

  void FailLater(const std::string& error) {
    const std::lock_guard lock(mutex_);
    async_error_ = error;
  }

  std::size_t UniqueIdBytes() const override { return 8; }
  absl::StatusOr<std::string> NewUniqueId() override { return std::string("unique!!"); }
  NcclState InitRank(Handle* handle, int, std::string_view, int) override {
    *handle = this;
    ++joined;
    return Begin("join");
  }
  NcclState AllReduceSum(Handle, float*, std::size_t, void*) override { return Begin("reduce"); }
  NcclState AllGather(Handle, const void* mine, std::size_t bytes, void* all, void*) override {
    std::memcpy(all, mine, bytes);
    return Begin("gather");
  }
  NcclState Broadcast(Handle, void*, std::size_t, int, void*) override {
    return Begin("broadcast");
  }
  NcclState AsyncState(Handle) override {
    const std::lock_guard lock(mutex_);
    if (!async_error_.empty()) return {NcclState::Kind::kFailed, async_error_};
    if (never_ready || left_ > 0) {
      --left_;
      return {NcclState::Kind::kInProgress, ""};
    }
    return {};
  }
  void Abort(Handle) override {
    const std::lock_guard lock(mutex_);
    ++aborted;
    changed_.notify_all();
  }
  // The guard reports from its own thread, so the test waits for it.
  bool AwaitAbort(std::chrono::seconds deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, deadline, [this] { return aborted > 0; });
  }
  void Destroy(Handle) override { ++destroyed; }

 private:
  NcclState Begin(const char* call) {
    const std::lock_guard lock(mutex_);
    calls.emplace_back(call);
    if (!error_now.empty()) return {NcclState::Kind::kFailed, error_now};
    left_ = in_progress;
    if (never_ready || left_ > 0) return {NcclState::Kind::kInProgress, ""};
    return {};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string async_error_;
  int left_ = 0;
};

}  // namespace penstock::shard
