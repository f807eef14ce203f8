#include "shard/executor/rank_device.h"

#include "common/status.h"
#include "shard/executor/free_memory.h"

namespace penstock::shard {

absl::StatusOr<DeviceMemory> HostDevice::Memory() {
  DeviceMemory memory;
  PENSTOCK_ASSIGN_OR_RETURN(memory.free_bytes, FreeMemory());
  memory.ranks = local_ranks_;
  return memory;
}

}  // namespace penstock::shard
