// Communicator of CUDA ranks, one process per GPU: raw NCCL, non-blocking, with a deadline on
// everything. A world of one takes the same path.
//
// Collectives are enqueued on the queue's stream and return at once; so an error of the device or
// of another rank shows later: from Health() or from the next call. StallGuard aborts what does not
// end, so waiting for the stream itself always ends.
//
// Sums are NCCL's: the same bits on every rank, but not always in rank order.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <memory>
#include <string>

#include "shard/parallel/communicator.h"
#include "shard/parallel/device_queue.h"
#include "shard/parallel/nccl/nccl_api.h"

namespace penstock::shard {

struct NcclOptions {
  int rank = 0;
  int world = 1;
  std::string unique_id;                      // rank 0's NcclApi::NewUniqueId, on every rank
  std::chrono::milliseconds timeout{30'000};  // of joining and of each collective
};

// Blocks until all ranks have joined or the timeout has passed. `api` and `queue` outlive the
// communicator.
absl::StatusOr<std::unique_ptr<Communicator>> JoinNcclGroup(const NcclOptions& options,
                                                            NcclApi& api, DeviceQueue& queue);

// The unique id of rank 0 on every rank: made there and told through `control`, which joins the
// same ranks on the host.
absl::StatusOr<std::string> ShareUniqueId(NcclApi& api, Communicator& control);

}  // namespace penstock::shard
