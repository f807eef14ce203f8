// penstock-gpu-bench [options] MODEL_FOLDER: backend_bench.h on the first device. Exit status 77 and
// one line on standard error: there is no GPU.
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "common/status.h"
#include "shard/backend/cuda/cuda_gpu.h"
#include "tests/gpu/bench/backend_bench.h"

namespace penstock::shard::cuda {
namespace {

constexpr char kUsage[] =
    "Usage: penstock-gpu-bench [--made-weights] [--batch-invariant] [--without PART,PART...]\n"
    "                          [--profiled-rows N] MODEL_FOLDER\n"
    "Parts: graphs, tensor-cores, skinny-products, fusion, overlap\n";

std::optional<BenchOptions> ReadOptions(int argc, char** argv) {
  BenchOptions options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--made-weights") {
      options.made_weights = true;
    } else if (word == "--batch-invariant") {
      options.batch_invariant = true;
    } else if (word == "--without" && i + 1 < argc) {
      const auto parts = PartsWithout(argv[++i]);
      if (!parts.ok()) return std::nullopt;
      options.parts = *parts;
    } else if (word == "--profiled-rows" && i + 1 < argc) {
      const std::string_view rows = argv[++i];
      std::from_chars(rows.data(), rows.data() + rows.size(), options.profiled_rows);
      if (options.profiled_rows == 0) return std::nullopt;
    } else if (word.starts_with("--") || !options.folder.empty()) {
      return std::nullopt;
    } else {
      options.folder = word;
    }
  }
  if (options.folder.empty()) return std::nullopt;
  return options;
}

}  // namespace
}  // namespace penstock::shard::cuda

int main(int argc, char** argv) {
  using namespace penstock;
  constexpr int kSkipped = 77;
  const auto options = shard::cuda::ReadOptions(argc, argv);
  if (!options.has_value()) {
    std::fputs(shard::cuda::kUsage, stderr);
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // each figure as soon as it is known
  auto device = shard::cuda::CudaGpu::Open(0, options->parts);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", Message(device.status()).c_str());
    return kSkipped;
  }
  shard::cuda::LaunchTimer gpu(*std::move(device));
  const absl::Status status = shard::cuda::RunBackendBench(gpu, *options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", Message(status).c_str());
  return status.ok() ? 0 : 1;
}
