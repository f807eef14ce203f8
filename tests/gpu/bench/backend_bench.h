// Compares the cuda backend with the peak rates of the device. Decode steps of B sequences with
// 1,024 positions are compared with the read bandwidth, and a prompt of 2,048 tokens with the rate
// of a large GEMM. Decode steps run as served, with token selection in the graphs and two steps in
// flight. They also run with one step in flight, and with token selection on the host.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>

#include "shard/backend/cuda/parts.h"
#include "shard/cache/paged/kv_type.h"
#include "shard/weights/quantization.h"
#include "tests/gpu/bench/launch_timer.h"

namespace penstock::shard::cuda {

struct BenchOptions {
  std::string folder;
  bool made_weights = false;  // random ones: of the folder's files only the headers are read
  bool batch_invariant = false;
  Quantization quantization = Quantization::kNone;
  KvType kv_type = KvType::kAuto;
  CudaParts parts;
  std::uint32_t profiled_rows = 0;  // > 0: only one decode step of so many rows, for a profiler
};

// Prints one JSON object per measurement and line.
absl::Status RunBackendBench(LaunchTimer& gpu, const BenchOptions& options);

}  // namespace penstock::shard::cuda
