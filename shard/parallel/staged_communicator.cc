#include "shard/parallel/staged_communicator.h"

#include <algorithm>

#include "common/status.h"

namespace penstock::shard {
namespace {

std::byte* Room(std::vector<std::byte>& buffer, std::size_t bytes) {
  if (buffer.size() < bytes) buffer.resize(bytes);
  return buffer.data();
}

}  // namespace

absl::Status StagedCommunicator::AllReduceSum(float* data, std::size_t count) {
  const std::size_t bytes = count * sizeof(float);
  auto* staged = reinterpret_cast<float*>(Room(staging_, bytes));
  PENSTOCK_RETURN_IF_ERROR(queue_.CopyToHost(staged, data, bytes));
  PENSTOCK_RETURN_IF_ERROR(host_->AllReduceSum(staged, count));
  return queue_.CopyToDevice(data, staged, bytes);
}

absl::Status StagedCommunicator::AllGather(const void* mine, std::size_t bytes, void* all) {
  const std::size_t total = bytes * static_cast<std::size_t>(world());
  std::byte* staged = Room(staging_, bytes);
  std::byte* gathered = Room(gathered_, total);
  PENSTOCK_RETURN_IF_ERROR(queue_.CopyToHost(staged, mine, bytes));
  PENSTOCK_RETURN_IF_ERROR(host_->AllGather(staged, bytes, gathered));
  return queue_.CopyToDevice(all, gathered, total);
}

absl::Status StagedCommunicator::Broadcast(void* data, std::size_t bytes, int root) {
  std::byte* staged = Room(staging_, bytes);
  if (rank() == root) PENSTOCK_RETURN_IF_ERROR(queue_.CopyToHost(staged, data, bytes));
  PENSTOCK_RETURN_IF_ERROR(host_->Broadcast(staged, bytes, root));
  return rank() == root ? absl::OkStatus() : queue_.CopyToDevice(data, staged, bytes);
}

}  // namespace penstock::shard
