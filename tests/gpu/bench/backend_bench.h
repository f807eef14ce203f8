// The cuda backend on a device against what the device reaches: decode steps of B sequences with
// 1,024 positions each against the read bandwidth, a prompt of 2,048 tokens against the rate of a
// large product. Decodes run as served: picks within the graphs, two steps in flight; beside that
// with one in flight, and with the logits taken to the host.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "tests/gpu/bench/launch_timer.h"

namespace penstock::shard::cuda {

// Prints one JSON object per measurement and line.
absl::Status RunBackendBench(LaunchTimer& gpu, const std::string& model_folder);

}  // namespace penstock::shard::cuda
