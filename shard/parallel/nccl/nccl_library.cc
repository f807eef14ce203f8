#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstring>

#include "shard/parallel/nccl/nccl_api.h"

namespace penstock::shard {
namespace {

NcclState Answer(ncclResult_t result, ncclComm_t comm = nullptr) {
  if (result == ncclSuccess) return {};
  if (result == ncclInProgress) return {NcclState::Kind::kInProgress, ""};
  std::string error = ncclGetErrorString(result);
  const char* detail = ncclGetLastError(comm);
  if (detail != nullptr && *detail != '\0') error += std::string(": ") + detail;
  return {NcclState::Kind::kFailed, std::move(error)};
}

ncclComm_t Comm(NcclApi::Handle handle) { return static_cast<ncclComm_t>(handle); }
cudaStream_t OnStream(void* stream) { return static_cast<cudaStream_t>(stream); }

class NcclLibrary final : public NcclApi {
 public:
  std::size_t UniqueIdBytes() const override { return sizeof(ncclUniqueId); }

  absl::StatusOr<std::string> NewUniqueId() override {
    ncclUniqueId id;
    const NcclState state = Answer(ncclGetUniqueId(&id));
    if (state.kind == NcclState::Kind::kFailed) return absl::UnavailableError(state.error);
    return std::string(id.internal, sizeof id.internal);
  }

  NcclState InitRank(Handle* handle, int world, std::string_view unique_id, int rank) override {
    ncclUniqueId id;
    std::memcpy(id.internal, unique_id.data(), sizeof id.internal);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    const ncclResult_t result = ncclCommInitRankConfig(&comm, world, id, rank, &config);
    *handle = comm;
    return Answer(result, comm);
  }

  NcclState AllReduceSum(Handle handle, float* data, std::size_t count, void* stream) override {
    return Answer(
        ncclAllReduce(data, data, count, ncclFloat32, ncclSum, Comm(handle), OnStream(stream)),
        Comm(handle));
  }
  NcclState AllGather(Handle handle, const void* mine, std::size_t bytes, void* all,
                      void* stream) override {
    return Answer(ncclAllGather(mine, all, bytes, ncclUint8, Comm(handle), OnStream(stream)),
                  Comm(handle));
  }
  NcclState Broadcast(Handle handle, void* data, std::size_t bytes, int root,
                      void* stream) override {
    return Answer(ncclBroadcast(data, data, bytes, ncclUint8, root, Comm(handle), OnStream(stream)),
                  Comm(handle));
  }

  NcclState AsyncState(Handle handle) override {
    ncclResult_t state = ncclSuccess;
    const NcclState asked = Answer(ncclCommGetAsyncError(Comm(handle), &state), Comm(handle));
    return asked.kind == NcclState::Kind::kReady ? Answer(state, Comm(handle)) : asked;
  }

  void Abort(Handle handle) override { ncclCommAbort(Comm(handle)); }
  void Destroy(Handle handle) override { ncclCommDestroy(Comm(handle)); }
};

}  // namespace

std::unique_ptr<NcclApi> MakeNcclLibrary() { return std::make_unique<NcclLibrary>(); }

}  // namespace penstock::shard
