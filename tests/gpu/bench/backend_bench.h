// Compares the cuda backend with the peak rates of the device. Decode steps of B sequences with
// 1,024 positions are compared with the read bandwidth, and a prompt of 2,048 tokens with the rate
// of a large GEMM. Decode steps run as served, with token selection in the graphs and two steps in
// flight. They also run with one step in flight, and with token selection on the host.
#pragma once

#include <absl/status/status.h>

#include <string>

#include "tests/gpu/bench/launch_timer.h"

namespace penstock::shard::cuda {

// Prints one JSON object per measurement and line.
absl::Status RunBackendBench(LaunchTimer& gpu, const std::string& model_folder);

}  // namespace penstock::shard::cuda
