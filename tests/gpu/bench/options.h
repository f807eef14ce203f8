// The command line of penstock-gpu-bench.
#pragma once

#include <optional>

#include "tests/gpu/bench/backend_bench.h"

namespace penstock::shard::cuda {

inline constexpr char kBenchUsage[] =
    "Usage: penstock-gpu-bench [--made-weights] [--batch-invariant] [--without PART,PART...]\n"
    "                          [--weights int8|fp8] [--kv fp8_e4m3fn] [--profiled-rows N]\n"
    "                          MODEL_FOLDER\n"
    "Parts: graphs, tensor-cores, skinny-products, fusion, overlap\n";

// Empty: print kBenchUsage.
std::optional<BenchOptions> ReadBenchOptions(int argc, char** argv);

}  // namespace penstock::shard::cuda
