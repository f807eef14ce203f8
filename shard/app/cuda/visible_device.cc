#include "shard/app/cuda/visible_device.h"

#include <sstream>
#include <vector>

namespace penstock::shard::cuda {

absl::StatusOr<std::string> DeviceOfRank(const char* visible_devices, std::uint32_t rank) {
  if (visible_devices == nullptr) return std::to_string(rank);
  std::vector<std::string> names;
  std::istringstream list(visible_devices);
  // As in CUDA, the list ends at the first invalid entry.
  for (std::string name; std::getline(list, name, ',') && !name.empty() && name != "-1";) {
    names.push_back(name);
  }
  if (names.size() == 1) return names[0];
  if (rank < names.size()) return names[rank];
  return absl::FailedPreconditionError("CUDA_VISIBLE_DEVICES must show a GPU for rank " +
                                       std::to_string(rank) + ". Given: \"" + visible_devices +
                                       "\"");
}

}  // namespace penstock::shard::cuda
