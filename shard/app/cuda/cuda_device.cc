#include "shard/app/cuda/cuda_device.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "shard/backend/cuda/staged_communicator.h"
#include "shard/parallel/nccl/nccl_communicator.h"

namespace penstock::shard::cuda {
namespace {

// The share of free memory for the KV cache without --kv-cache-memory. Libraries need the rest.
constexpr double kAutoShare = 0.9;

}  // namespace

absl::StatusOr<DeviceMemory> CudaDevice::Memory() {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t free, gpu_.FreeBytes());
  const auto kept = static_cast<std::uint64_t>((1.0 - facts_.memory_fraction) *
                                               static_cast<double>(facts_.total_bytes));
  DeviceMemory memory;
  memory.free_bytes = free - std::min(free, kept);
  memory.ranks = sharers_;
  memory.auto_share = kAutoShare;
  return memory;
}

absl::StatusOr<std::vector<int>> CudaDevice::CountSharers(Communicator& control) const {
  const std::size_t size = facts_.uuid.size();
  const auto world = static_cast<std::size_t>(control.world());
  std::string all(size * world, '\0');
  PENSTOCK_RETURN_IF_ERROR(control.AllGather(facts_.uuid.data(), size, all.data()));
  const auto uuid = [&](std::size_t rank) {
    return std::string_view(all).substr(rank * size, size);
  };
  std::vector<int> sharers(world, 0);
  for (std::size_t a = 0; a < world; ++a) {
    for (std::size_t b = 0; b < world; ++b) sharers[a] += uuid(a) == uuid(b) ? 1 : 0;
  }
  return sharers;
}

absl::StatusOr<std::shared_ptr<Communicator>> CudaDevice::Join(
    std::shared_ptr<Communicator> control) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<int> sharers, CountSharers(*control));
  sharers_ = static_cast<std::uint32_t>(sharers[static_cast<std::size_t>(control->rank())]);
  // One rank has nothing to sum: NCCL would only cost memory and the seconds of its start.
  if (control->world() == 1) return control;
  if (*std::max_element(sharers.begin(), sharers.end()) > 1) {
    log::Warn("ranks share a GPU: their sums go through host memory, which is slow");
    return std::make_shared<StagedCommunicator>(std::move(control), gpu_);
  }
  NcclOptions options;
  options.rank = control->rank();
  options.world = control->world();
  PENSTOCK_ASSIGN_OR_RETURN(options.unique_id, ShareUniqueId(nccl_, *control));
  return JoinNcclGroup(options, nccl_, queue_);
}

}  // namespace penstock::shard::cuda
