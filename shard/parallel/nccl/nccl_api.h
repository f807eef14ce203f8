// The calls of NCCL that Penstock makes, behind an interface, so that everything about joining,
// deadlines and aborts is tested without a GPU. nccl_library.h is the real one.
//
// Communicators are non-blocking (NCCL 2.14 and later): a call may answer kInProgress, and
// AsyncState then tells how it ended.
//
// Threading: one thread per communicator, but AsyncState and Abort may be called from any thread.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::shard {

struct NcclState {
  enum class Kind { kReady, kInProgress, kFailed };
  Kind kind = Kind::kReady;
  std::string error;  // of kFailed: NCCL's own words
};

class NcclApi {
 public:
  // Opaque; owned by the library between InitRank and Abort or Destroy.
  using Handle = void*;

  virtual ~NcclApi() = default;

  virtual std::size_t UniqueIdBytes() const = 0;
  virtual absl::StatusOr<std::string> NewUniqueId() = 0;

  // Begins to join; `*handle` is set unless the call fails at once.
  virtual NcclState InitRank(Handle* handle, int world, std::string_view unique_id, int rank) = 0;

  // Enqueue on `stream`. All buffers lie on the device.
  virtual NcclState AllReduceSum(Handle handle, float* data, std::size_t count, void* stream) = 0;
  virtual NcclState AllGather(Handle handle, const void* mine, std::size_t bytes, void* all,
                              void* stream) = 0;
  virtual NcclState Broadcast(Handle handle, void* data, std::size_t bytes, int root,
                              void* stream) = 0;

  // How the last call goes, and errors of the network or of other ranks since then.
  virtual NcclState AsyncState(Handle handle) = 0;

  virtual void Abort(Handle handle) = 0;    // also ends kernels that wait for other ranks
  virtual void Destroy(Handle handle) = 0;  // after all ranks have finished
};

}  // namespace penstock::shard
