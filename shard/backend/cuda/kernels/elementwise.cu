#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/row_grid.cuh"

namespace penstock::shard::cuda {
namespace {

template <class T, int kCount>
__global__ void EmbedKernel(EmbedArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  const std::int32_t newest = args.newest == nullptr ? -1 : args.newest[blockIdx.x];
  const std::int32_t token = newest < 0 ? args.tokens[blockIdx.x] : args.samples[newest];
  const std::int32_t index = token - args.first;
  float values[kCount] = {};
  if (index >= 0 && index < args.count) {
    Load<kCount>(
        static_cast<const T*>(args.table) + static_cast<std::uint64_t>(index) * args.width + at,
        values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] *= args.scale;
  }
  Store<kCount>(static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width + at, values);
}

// Sines, then cosines, of the position times width / 2 frequencies from 1 down to 1e-4.
__device__ inline float Sinusoid(float position, std::uint32_t column, std::uint32_t width) {
  const std::uint32_t half = width / 2;
  const bool sine = column < half;
  const float step = -logf(10000.0f) / static_cast<float>(half - 1);
  const float angle = position * expf(static_cast<float>(sine ? column : column - half) * step);
  return sine ? sinf(angle) : cosf(angle);
}

template <class T, int kCount>
__global__ void AddPositionsKernel(PositionArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  const std::uint32_t position = args.positions[blockIdx.x] + args.offset;
  T* const out = static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width + at;
  float values[kCount], added[kCount];
  Load<kCount>(out, values);
  if (args.table == nullptr) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      added[i] = Sinusoid(static_cast<float>(position), at + i, args.width);
    }
  } else {
    const std::uint32_t entry = position < args.entries ? position : args.entries - 1;
    Load<kCount>(static_cast<const T*>(args.table) + std::uint64_t{entry} * args.width + at, added);
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] += added[i];
  Store<kCount>(out, values);
}

template <class T, int kCount>
__global__ void ClampKernel(T* values, std::uint64_t count, float limit) {
  WaitForEarlierKernels();
  const std::uint64_t at = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
  if (at >= count) return;
  float own[kCount];
  Load<kCount>(values + at, own);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    own[i] = own[i] > limit ? limit : own[i] < -limit ? -limit : own[i];  // NaN stays
  }
  Store<kCount>(values + at, own);
}

template <int kCount>
__global__ void ScaleLogitsKernel(float* logits, std::uint64_t count, float scale, float softcap) {
  WaitForEarlierKernels();
  const std::uint64_t at = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
  if (at >= count) return;
  float own[kCount];
  Load<kCount>(logits + at, own);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    own[i] *= scale;
    if (softcap != 0.0f) own[i] = softcap * tanhf(own[i] / softcap);
  }
  Store<kCount>(logits + at, own);
}

template <class T, int kCount>
__global__ void SelectRowsKernel(SelectArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  float values[kCount];
  Load<kCount>(static_cast<const T*>(args.in) +
                   static_cast<std::uint64_t>(args.chosen[blockIdx.x]) * args.width + at,
               values);
  Store<kCount>(static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width + at, values);
}

// Between elements and floats, kCount elements a thread.
template <class In, class Out, int kCount>
__global__ void ConvertKernel(const In* in, Out* out, std::uint64_t count) {
  WaitForEarlierKernels();
  const std::uint64_t at = (std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
  if (at >= count) return;
  constexpr int kStep = kCount < 4 ? kCount : 4;  // four floats are 16 bytes
  float values[kCount];
  if constexpr (sizeof(In) <= sizeof(Out)) {
    Load<kCount>(in + at, values);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += kStep) {
      Load<kStep>(in + at + i, reinterpret_cast<float(&)[kStep]>(values[i]));
    }
  }
  if constexpr (sizeof(Out) <= sizeof(In)) {
    Store<kCount>(out + at, values);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; i += kStep) {
      Store<kStep>(out + at + i, reinterpret_cast<const float(&)[kStep]>(values[i]));
    }
  }
}

}  // namespace

absl::Status Embed(const EmbedArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((EmbedKernel<T, kCount>), GridOf<kCount>(args.rows, args.width), kThreads, 0,
                    stream, args);
  });
}

absl::Status AddPositions(const PositionArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((AddPositionsKernel<T, kCount>), GridOf<kCount>(args.rows, args.width),
                    kThreads, 0, stream, args);
  });
}

absl::Status Clamp(void* values, std::uint64_t count, float limit, DType dtype, Stream stream) {
  if (count == 0) return absl::OkStatus();
  return ForElements(dtype, count, [&](auto element, auto at_once) {
    using T = decltype(element);
    constexpr int kCount = decltype(at_once)::value;
    PENSTOCK_LAUNCH((ClampKernel<T, kCount>), CeilDivide(count, kThreads * kCount), kThreads, 0,
                    stream, static_cast<T*>(values), count, limit);
  });
}

absl::Status ScaleLogits(float* logits, std::uint64_t count, float scale, float softcap,
                         Stream stream) {
  if (count == 0) return absl::OkStatus();
  return ForElements(DType::kFloat32, count, [&](auto, auto at_once) {
    constexpr int kCount = decltype(at_once)::value;
    if constexpr (kCount <= kWidest<float>) {
      PENSTOCK_LAUNCH((ScaleLogitsKernel<kCount>), CeilDivide(count, kThreads * kCount), kThreads,
                      0, stream, logits, count, scale, softcap);
    }
  });
}

absl::Status SelectRows(const SelectArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((SelectRowsKernel<T, kCount>), GridOf<kCount>(args.rows, args.width), kThreads,
                    0, stream, args);
  });
}

absl::Status Widen(const void* in, float* out, std::uint64_t count, DType dtype, Stream stream) {
  if (count == 0) return absl::OkStatus();
  return ForElements(dtype, count, [&](auto element, auto at_once) {
    using T = decltype(element);
    constexpr int kCount = decltype(at_once)::value;
    PENSTOCK_LAUNCH((ConvertKernel<T, float, kCount>), CeilDivide(count, kThreads * kCount),
                    kThreads, 0, stream, static_cast<const T*>(in), out, count);
  });
}

absl::Status Narrow(const float* in, void* out, std::uint64_t count, DType dtype, Stream stream) {
  if (count == 0) return absl::OkStatus();
  return ForElements(dtype, count, [&](auto element, auto at_once) {
    using T = decltype(element);
    constexpr int kCount = decltype(at_once)::value;
    PENSTOCK_LAUNCH((ConvertKernel<float, T, kCount>), CeilDivide(count, kThreads * kCount),
                    kThreads, 0, stream, in, static_cast<T*>(out), count);
  });
}

}  // namespace penstock::shard::cuda
