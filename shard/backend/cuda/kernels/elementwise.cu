#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/portable.cuh"

namespace penstock::shard::cuda {
namespace {

constexpr unsigned kThreads = 256;

template <class T>
__global__ void EmbedKernel(EmbedArgs args) {
  const std::int32_t newest = args.newest == nullptr ? -1 : args.newest[blockIdx.x];
  const std::int32_t token = newest < 0 ? args.tokens[blockIdx.x] : args.picks[newest];
  const std::int32_t index = token - args.first;
  const bool mine = index >= 0 && index < args.count;
  const T* from =
      static_cast<const T*>(args.table) + static_cast<std::uint64_t>(mine ? index : 0) * args.width;
  T* to = static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width;
  for (std::uint32_t i = threadIdx.x; i < args.width; i += blockDim.x) {
    to[i] = mine ? from[i] : FromFloat<T>(0.0f);
  }
}

template <class T>
__global__ void SelectRowsKernel(SelectArgs args) {
  const T* from = static_cast<const T*>(args.in) +
                  static_cast<std::uint64_t>(args.chosen[blockIdx.x]) * args.width;
  T* to = static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width;
  for (std::uint32_t i = threadIdx.x; i < args.width; i += blockDim.x) to[i] = from[i];
}

template <class T>
__global__ void SiluMulKernel(GateArgs args) {
  const T* gate = static_cast<const T*>(args.in) + std::uint64_t{blockIdx.x} * args.width * 2;
  const T* up = gate + args.width;
  T* out = static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width;
  for (std::uint32_t i = threadIdx.x; i < args.width; i += blockDim.x) {
    const float value = ToFloat(gate[i]);
    out[i] = FromFloat<T>(Rounded<T>(value / (1.0f + expf(-value))) * ToFloat(up[i]));
  }
}

template <class T>
__global__ void WidenKernel(const T* in, float* out, std::uint64_t count) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] = ToFloat(in[i]);
}

template <class T>
__global__ void NarrowKernel(const float* in, T* out, std::uint64_t count) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] = FromFloat<T>(in[i]);
}

}  // namespace

absl::Status Embed(const EmbedArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElement(dtype, [&](auto element) {
    PENSTOCK_LAUNCH(EmbedKernel<decltype(element)>, args.rows, kThreads, 0, stream, args);
  });
}

absl::Status SelectRows(const SelectArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElement(dtype, [&](auto element) {
    PENSTOCK_LAUNCH(SelectRowsKernel<decltype(element)>, args.rows, kThreads, 0, stream, args);
  });
}

absl::Status SiluMul(const GateArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElement(dtype, [&](auto element) {
    PENSTOCK_LAUNCH(SiluMulKernel<decltype(element)>, args.rows, kThreads, 0, stream, args);
  });
}

absl::Status Widen(const void* in, float* out, std::uint64_t count, DType dtype, Stream stream) {
  if (count == 0) return absl::OkStatus();
  return ForElement(dtype, [&](auto element) {
    using T = decltype(element);
    PENSTOCK_LAUNCH(WidenKernel<T>, CeilDivide(count, kThreads), kThreads, 0, stream,
                    static_cast<const T*>(in), out, count);
  });
}

absl::Status Narrow(const float* in, void* out, std::uint64_t count, DType dtype, Stream stream) {
  if (count == 0) return absl::OkStatus();
  return ForElement(dtype, [&](auto element) {
    using T = decltype(element);
    PENSTOCK_LAUNCH(NarrowKernel<T>, CeilDivide(count, kThreads), kThreads, 0, stream, in,
                    static_cast<T*>(out), count);
  });
}

}  // namespace penstock::shard::cuda
