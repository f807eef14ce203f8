#include "shard/parallel/nccl/nccl_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "common/status.h"
#include "shard/parallel/nccl/stall_guard.h"

namespace penstock::shard {
namespace {

// The proxy thread of NCCL finishes a non-blocking call within tens of microseconds. The first call
// of a communicator takes longer, because it connects the ranks.
constexpr std::chrono::microseconds kFirstWait{20};
constexpr std::chrono::microseconds kLongestWait{1000};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const NcclOptions& options, NcclApi& api, DeviceQueue& queue)
      : options_(options), api_(api), queue_(queue) {}
  ~NcclCommunicator() override;

  absl::Status Join();
  int rank() const override { return options_.rank; }
  int world() const override { return options_.world; }
  absl::Status AllReduceSum(float* data, std::size_t count) override;
  absl::Status AllGather(const void* mine, std::size_t bytes, void* all) override;
  absl::Status Broadcast(void* data, std::size_t bytes, int root) override;
  bool CanBeRecorded() const override { return true; }
  absl::Status WatchQueued() override;
  absl::Status Health() override;
  void Abort() override;

 private:
  // Enqueues a collective, waits until NCCL has taken it, then applies the deadline to it.
  template <class Enqueue>
  absl::Status Run(const char* what, Enqueue enqueue);
  absl::Status Settle(const char* what, NcclState state);
  absl::Status Progress();
  void AbortWith(absl::Status why);

  // Held during all calls of the library, because an abort frees the handle. No call waits for
  // other ranks, because the communicator is non-blocking.
  template <class Call>
  NcclState Locked(Call call) {
    const std::lock_guard lock(handle_mutex_);
    if (!Health().ok()) return {NcclState::Kind::kFailed, "aborted"};
    return call();
  }

  const NcclOptions options_;
  NcclApi& api_;
  DeviceQueue& queue_;
  std::mutex handle_mutex_;
  NcclApi::Handle handle_ = nullptr;

  std::mutex mutex_;  // guards the next two
  std::condition_variable aborted_;
  absl::Status health_;
  std::unique_ptr<StallGuard> guard_;  // last, because its thread uses the members above
};

NcclCommunicator::~NcclCommunicator() {
  guard_.reset();
  if (handle_ != nullptr) api_.Destroy(handle_);
}

absl::Status NcclCommunicator::Join() {
  PENSTOCK_RETURN_IF_ERROR(Settle(
      "joining",
      Locked([this] { return api_.InitRank(&handle_, world(), options_.unique_id, rank()); })));
  guard_ = std::make_unique<StallGuard>(
      StallGuard::Options{.timeout = options_.timeout}, queue_, [this] { return Progress(); },
      [this](absl::Status why) { AbortWith(std::move(why)); });
  return absl::OkStatus();
}

absl::Status NcclCommunicator::Progress() {
  const NcclState state = Locked([this] { return api_.AsyncState(handle_); });
  return state.kind == NcclState::Kind::kFailed ? absl::UnavailableError(state.error)
                                                : absl::OkStatus();
}

absl::Status NcclCommunicator::Settle(const char* what, NcclState state) {
  const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
  auto wait = kFirstWait;
  while (state.kind == NcclState::Kind::kInProgress) {
    std::unique_lock lock(mutex_);
    if (aborted_.wait_for(lock, wait, [this] { return !health_.ok(); })) return health_;
    lock.unlock();
    if (std::chrono::steady_clock::now() >= deadline) {
      state = {NcclState::Kind::kFailed,
               "nothing for " + std::to_string(options_.timeout.count()) + " ms"};
      break;
    }
    state = Locked([this] { return api_.AsyncState(handle_); });
    wait = std::min(2 * wait, kLongestWait);
  }
  if (state.kind == NcclState::Kind::kReady) return absl::OkStatus();
  AbortWith(absl::UnavailableError(std::string(what) + ": " + state.error));
  return Health();
}

template <class Enqueue>
absl::Status NcclCommunicator::Run(const char* what, Enqueue enqueue) {
  PENSTOCK_RETURN_IF_ERROR(Health());
  PENSTOCK_RETURN_IF_ERROR(Settle(what, Locked(enqueue)));
  return WatchQueued();
}

absl::Status NcclCommunicator::WatchQueued() {
  if (absl::Status watched = guard_->Watch(); !watched.ok()) AbortWith(std::move(watched));
  return Health();
}

absl::Status NcclCommunicator::AllReduceSum(float* data, std::size_t count) {
  return Run("all-reduce",
             [&] { return api_.AllReduceSum(handle_, data, count, queue_.NativeStream()); });
}

absl::Status NcclCommunicator::AllGather(const void* mine, std::size_t bytes, void* all) {
  return Run("all-gather",
             [&] { return api_.AllGather(handle_, mine, bytes, all, queue_.NativeStream()); });
}

absl::Status NcclCommunicator::Broadcast(void* data, std::size_t bytes, int root) {
  return Run("broadcast",
             [&] { return api_.Broadcast(handle_, data, bytes, root, queue_.NativeStream()); });
}

absl::Status NcclCommunicator::Health() {
  const std::lock_guard lock(mutex_);
  return health_;
}

void NcclCommunicator::Abort() { AbortWith(absl::AbortedError("the group was aborted")); }

void NcclCommunicator::AbortWith(absl::Status why) {
  {
    const std::lock_guard lock(mutex_);
    if (!health_.ok()) return;
    health_ = WithContext(why, "nccl, rank " + std::to_string(rank()));
  }
  aborted_.notify_all();
  const std::lock_guard lock(handle_mutex_);
  if (handle_ != nullptr) api_.Abort(std::exchange(handle_, nullptr));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> JoinNcclGroup(const NcclOptions& options,
                                                            NcclApi& api, DeviceQueue& queue) {
  if (options.rank < 0 || options.rank >= options.world) {
    return BadValue("rank", std::to_string(options.rank),
                    "0 to " + std::to_string(options.world - 1));
  }
  if (options.unique_id.size() != api.UniqueIdBytes()) {
    return BadValue("unique id", std::to_string(options.unique_id.size()) + " bytes",
                    std::to_string(api.UniqueIdBytes()) + " bytes");
  }
  auto communicator = std::make_unique<NcclCommunicator>(options, api, queue);
  PENSTOCK_RETURN_IF_ERROR(communicator->Join());
  return std::unique_ptr<Communicator>(std::move(communicator));
}

absl::StatusOr<std::string> ShareUniqueId(NcclApi& api, Communicator& control) {
  std::string id(api.UniqueIdBytes(), '\0');
  if (control.rank() == 0) {
    PENSTOCK_ASSIGN_OR_RETURN(id, api.NewUniqueId());
  }
  PENSTOCK_RETURN_IF_ERROR(control.Broadcast(id.data(), id.size(), 0));
  return id;
}

}  // namespace penstock::shard
