#include "shard/backend/cuda/staged_communicator.h"

#include "common/status.h"

namespace penstock::shard::cuda {

// The device may still read what the last call enqueued.
StagedCommunicator::~StagedCommunicator() {
  if (failure_.ok()) Settle().IgnoreError();
}

absl::Status StagedCommunicator::AllReduceSum(float* data, std::size_t count) {
  return failure_.ok() ? Report(Reduce(data, count)) : failure_;
}

absl::Status StagedCommunicator::AllGather(const void* mine, std::size_t bytes, void* all) {
  return failure_.ok() ? Report(Gather(mine, bytes, all)) : failure_;
}

absl::Status StagedCommunicator::Broadcast(void* data, std::size_t bytes, int root) {
  return failure_.ok() ? Report(Send(data, bytes, root)) : failure_;
}

absl::Status StagedCommunicator::Reduce(float* data, std::size_t count) {
  const std::size_t bytes = count * sizeof(float);
  PENSTOCK_ASSIGN_OR_RETURN(std::byte* const staged, Room(staging_, bytes));
  PENSTOCK_RETURN_IF_ERROR(gpu_.Download(staged, data, bytes));
  PENSTOCK_RETURN_IF_ERROR(Settle());
  PENSTOCK_RETURN_IF_ERROR(host_->AllReduceSum(reinterpret_cast<float*>(staged), count));
  return gpu_.Upload(data, staged, bytes);
}

absl::Status StagedCommunicator::Gather(const void* mine, std::size_t bytes, void* all) {
  const std::size_t total = bytes * static_cast<std::size_t>(world());
  PENSTOCK_ASSIGN_OR_RETURN(std::byte* const staged, Room(staging_, bytes));
  PENSTOCK_ASSIGN_OR_RETURN(std::byte* const gathered, Room(gathered_, total));
  PENSTOCK_RETURN_IF_ERROR(gpu_.Download(staged, mine, bytes));
  PENSTOCK_RETURN_IF_ERROR(Settle());
  PENSTOCK_RETURN_IF_ERROR(host_->AllGather(staged, bytes, gathered));
  return gpu_.Upload(all, gathered, total);
}

absl::Status StagedCommunicator::Send(void* data, std::size_t bytes, int root) {
  PENSTOCK_ASSIGN_OR_RETURN(std::byte* const staged, Room(staging_, bytes));
  if (rank() == root) PENSTOCK_RETURN_IF_ERROR(gpu_.Download(staged, data, bytes));
  // Not only the root waits here: the device may still read what the last call uploaded.
  PENSTOCK_RETURN_IF_ERROR(Settle());
  PENSTOCK_RETURN_IF_ERROR(host_->Broadcast(staged, bytes, root));
  return rank() == root ? absl::OkStatus() : gpu_.Upload(data, staged, bytes);
}

absl::Status StagedCommunicator::Report(absl::Status status) {
  if (status.ok()) return status;
  failure_ = std::move(status);
  host_->Abort();
  return failure_;
}

absl::Status StagedCommunicator::Settle() {
  PENSTOCK_ASSIGN_OR_RETURN(const Gpu::Mark mark, gpu_.MarkHere(nullptr));
  return WithContext(gpu_.WaitFor(mark), "a copy of a collective");
}

absl::StatusOr<std::byte*> StagedCommunicator::Room(GpuMemory& buffer, std::size_t bytes) {
  if (buffer.bytes() < bytes) {
    PENSTOCK_RETURN_IF_ERROR(Settle());
    PENSTOCK_ASSIGN_OR_RETURN(buffer, GpuMemory::Pinned(gpu_, bytes));
  }
  return buffer.At(0);
}

}  // namespace penstock::shard::cuda
