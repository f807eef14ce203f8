#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/portable.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kThreads = 512;
constexpr std::int32_t kNobody = 0x7fffffff;

// A candidate: the larger value wins, then the lower index. NaN beats everything, so that it shows.
struct Best {
  float value;
  std::int32_t index;
};

__device__ bool Beats(const Best& a, const Best& b) {
  const bool a_nan = a.value != a.value;
  const bool b_nan = b.value != b.value;
  if (a_nan != b_nan) return a_nan;
  if (a.value != b.value && !a_nan) return a.value > b.value;
  return a.index < b.index;
}

__global__ void ArgmaxKernel(ArgmaxArgs args) {
  __shared__ Best of_threads[kThreads];
  const float* row = args.logits + std::uint64_t{blockIdx.x} * args.width;
  Best best = {-INFINITY, kNobody};
  for (std::uint32_t i = threadIdx.x; i < args.width; i += blockDim.x) {
    const Best next = {row[i], static_cast<std::int32_t>(i)};
    if (Beats(next, best)) best = next;
  }
  of_threads[threadIdx.x] = best;
  for (unsigned step = kThreads / 2; step > 0; step /= 2) {
    __syncthreads();
    if (threadIdx.x < step && Beats(of_threads[threadIdx.x + step], of_threads[threadIdx.x])) {
      of_threads[threadIdx.x] = of_threads[threadIdx.x + step];
    }
  }
  if (threadIdx.x != 0) return;
  const Best& winner = of_threads[0];
  args.out[blockIdx.x] =
      winner.value != winner.value || winner.index == kNobody ? -1 : winner.index;
}

}  // namespace

absl::Status Argmax(const ArgmaxArgs& args, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  PENSTOCK_LAUNCH(ArgmaxKernel, args.rows, kThreads, 0, stream, args);
  return LaunchStatus();
}

}  // namespace penstock::shard::cuda
