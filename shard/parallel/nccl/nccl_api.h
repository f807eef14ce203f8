// The calls of NCCL that Penstock makes, as an interface, so that joining, deadlines and aborts can
// be tested without a GPU. MakeNcclLibrary has the implementation.
//
// Communicators are non-blocking (NCCL 2.14 and later). A call may return kInProgress; AsyncState
// then tells how it ended.
//
// Threading: one thread per communicator; AsyncState and Abort from any thread.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace penstock::shard {

struct NcclState {
  enum class Kind { kReady, kInProgress, kFailed };
  Kind kind = Kind::kReady;
  std::string error;  // the text of NCCL, for kFailed
};

class NcclApi {
 public:
  // Opaque; owned by the library between InitRank and Abort or Destroy.
  using Handle = void*;

  virtual ~NcclApi() = default;

  virtual std::size_t UniqueIdBytes() const = 0;
  virtual absl::StatusOr<std::string> NewUniqueId() = 0;

  // Starts to join the group. Sets `*handle` unless the call fails at once.
  virtual NcclState InitRank(Handle* handle, int world, std::string_view unique_id, int rank) = 0;

  // Enqueue on `stream`. All buffers lie on the device.
  virtual NcclState AllReduceSum(Handle handle, float* data, std::size_t count, void* stream) = 0;
  virtual NcclState AllGather(Handle handle, const void* mine, std::size_t bytes, void* all,
                              void* stream) = 0;
  virtual NcclState Broadcast(Handle handle, void* data, std::size_t bytes, int root,
                              void* stream) = 0;

  // The state of the last call, including later errors of the network or of other ranks.
  virtual NcclState AsyncState(Handle handle) = 0;

  virtual void Abort(Handle handle) = 0;    // also ends kernels that wait for other ranks
  virtual void Destroy(Handle handle) = 0;  // after all ranks have finished
};

// NCCL 2.28. In the CUDA build only.
std::unique_ptr<NcclApi> MakeNcclLibrary();

}  // namespace penstock::shard
