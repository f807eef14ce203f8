// penstock-gpu-bench: backend_bench.h on the first device. Exit status 77 and one line on standard
// error: there is no GPU.
#include <cstdio>

#include "common/status.h"
#include "shard/backend/cuda/cuda_gpu.h"
#include "tests/gpu/bench/backend_bench.h"
#include "tests/gpu/bench/options.h"

int main(int argc, char** argv) {
  using namespace penstock;
  constexpr int kSkipped = 77;
  const auto options = shard::cuda::ReadBenchOptions(argc, argv);
  if (!options.has_value()) {
    std::fputs(shard::cuda::kBenchUsage, stderr);
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
