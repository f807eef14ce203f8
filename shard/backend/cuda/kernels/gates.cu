// Activations and gates.
#include "shard/backend/cuda/kernels.h"
#include "shard/backend/cuda/kernels/row_grid.cuh"

namespace penstock::shard::cuda {
namespace {

__device__ inline float Sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

template <Activation kActivation>
__device__ float Activated(float x) {
  switch (kActivation) {
    case Activation::kSilu:
      return x / (1.0f + expf(-x));
    case Activation::kGelu:
      return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case Activation::kGeluTanh:
      return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
    case Activation::kRelu:
      return x < 0.0f ? 0.0f : x;
    case Activation::kReluSquared:
      return x < 0.0f ? 0.0f : x * x;
  }
  return x;
}

template <Activation kActivation, bool kGated, class T, int kCount>
__global__ void ActivateKernel(ActivationArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  const std::uint64_t stride = kGated ? 2 * std::uint64_t{args.width} : args.width;
  const T* row = static_cast<const T*>(args.in) + blockIdx.x * stride;
  float values[kCount];
  Load<kCount>(row + at, values);
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = Activated<kActivation>(values[i]);
  if constexpr (kGated) {
    float up[kCount];
    Load<kCount>(row + args.width + at, up);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = up[i] * Rounded<T>(values[i]);
  }
  Store<kCount>(static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width + at, values);
}

template <class T, int kCount>
__global__ void BoundedGateKernel(BoundedGateArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  const T* row = static_cast<const T*>(args.in) + std::uint64_t{blockIdx.x} * args.width * 2;
  float gate[kCount], up[kCount];
  Load<kCount>(row + at, gate);
  Load<kCount>(row + args.width + at, up);
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float g = gate[i] > args.limit ? args.limit : gate[i];
    const float u = up[i] > args.limit ? args.limit : up[i] < -args.limit ? -args.limit : up[i];
    up[i] = (u + 1.0f) * g * Sigmoid(args.alpha * g);
  }
  Store<kCount>(static_cast<T*>(args.out) + std::uint64_t{blockIdx.x} * args.width + at, up);
}

template <class T, int kCount>
__global__ void SigmoidGateKernel(SigmoidGateArgs args) {
  WaitForEarlierKernels();
  const std::uint32_t at = Column<kCount>();
  if (at >= args.width) return;
  const std::uint64_t begin = std::uint64_t{blockIdx.x} * args.width + at;
  const T* const gates = static_cast<const T*>(args.gates);
  T* const values = static_cast<T*>(args.values) + begin;
  float own[kCount], gate[kCount];
  Load<kCount>(values, own);
  if (args.one_per_row) {
    const float of_row = ToFloat(gates[blockIdx.x]);
#pragma unroll
    for (int i = 0; i < kCount; ++i) gate[i] = of_row;
  } else {
    Load<kCount>(gates + begin, gate);
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) own[i] *= Rounded<T>(Sigmoid(gate[i]));
  Store<kCount>(values, own);
}

template <Activation kActivation, bool kGated>
absl::Status LaunchActivation(const ActivationArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((ActivateKernel<kActivation, kGated, T, kCount>),
                    GridOf<kCount>(args.rows, args.width), kThreads, 0, stream, args);
  });
}

template <bool kGated>
absl::Status ForActivation(const ActivationArgs& args, DType dtype, Stream stream) {
  switch (args.activation) {
    case Activation::kSilu:
      return LaunchActivation<Activation::kSilu, kGated>(args, dtype, stream);
    case Activation::kGelu:
      return LaunchActivation<Activation::kGelu, kGated>(args, dtype, stream);
    case Activation::kGeluTanh:
      return LaunchActivation<Activation::kGeluTanh, kGated>(args, dtype, stream);
    case Activation::kRelu:
      return LaunchActivation<Activation::kRelu, kGated>(args, dtype, stream);
    case Activation::kReluSquared:
      return LaunchActivation<Activation::kReluSquared, kGated>(args, dtype, stream);
  }
  return absl::InternalError("an activation without a kernel");
}

}  // namespace

absl::Status Activate(const ActivationArgs& args, DType dtype, Stream stream) {
  return ForActivation<false>(args, dtype, stream);
}

absl::Status ActivateGate(const ActivationArgs& args, DType dtype, Stream stream) {
  return ForActivation<true>(args, dtype, stream);
}

absl::Status ActivateBoundedGate(const BoundedGateArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((BoundedGateKernel<T, kCount>), GridOf<kCount>(args.rows, args.width), kThreads,
                    0, stream, args);
  });
}

absl::Status MultiplyBySigmoid(const SigmoidGateArgs& args, DType dtype, Stream stream) {
  if (args.rows == 0) return absl::OkStatus();
  return ForElements(dtype, args.width, [&](auto element, auto count) {
    using T = decltype(element);
    constexpr int kCount = decltype(count)::value;
    PENSTOCK_LAUNCH((SigmoidGateKernel<T, kCount>), GridOf<kCount>(args.rows, args.width), kThreads,
                    0, stream, args);
  });
}

}  // namespace penstock::shard::cuda
