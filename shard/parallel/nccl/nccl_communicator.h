// The communicator of CUDA ranks, one process for each GPU. It uses NCCL in non-blocking mode, with
// a deadline for every operation. A single rank uses the same code.
//
// Collectives are enqueued on the stream of the queue and return at once. Errors of the device or
// of another rank are therefore returned later, by Health() or the next call. StallGuard aborts
// collectives that do not end, so a wait for the stream always ends.
//
// Sums have the same bits on every rank, but NCCL need not add in rank order.
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
  std::string unique_id;                      // NcclApi::NewUniqueId of rank 0
  std::chrono::milliseconds timeout{30'000};  // of joining and of each collective
};

// Blocks until all ranks have joined or the timeout has passed. `api` and `queue` outlive the
// communicator.
absl::StatusOr<std::unique_ptr<Communicator>> JoinNcclGroup(const NcclOptions& options,
                                                            NcclApi& api, DeviceQueue& queue);

// Creates the unique id on rank 0 and broadcasts it through `control`, which joins the same ranks
// on the host.
absl::StatusOr<std::string> ShareUniqueId(NcclApi& api, Communicator& control);

}  // namespace penstock::shard
