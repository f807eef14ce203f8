// Elements by 16 bytes at a time where a row's width allows it, computed on as floats.
#pragma once

#include "shard/backend/cuda/kernels/portable.cuh"

namespace penstock::shard::cuda {

// Elements that are moved at once.
template <class T>
constexpr int kWidest = static_cast<int>(sizeof(Bytes16) / sizeof(T));

// kCount is 1 or kWidest<T>; then the address is a multiple of 16.
template <int kCount, class T>
__device__ void Load(const T* from, float (&to)[kCount]) {
  if constexpr (kCount == 1) {
    to[0] = ToFloat(from[0]);
  } else {
    T values[kCount];
    const Bytes16 bytes = *reinterpret_cast<const Bytes16*>(from);
    memcpy(values, &bytes, sizeof values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) to[i] = ToFloat(values[i]);
  }
}

template <int kCount, class T>
__device__ void Store(T* to, const float (&from)[kCount]) {
  if constexpr (kCount == 1) {
    to[0] = FromFloat<T>(from[0]);
  } else {
    T values[kCount];
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = FromFloat<T>(from[i]);
    Bytes16 bytes;
    memcpy(&bytes, values, sizeof bytes);
    *reinterpret_cast<Bytes16*>(to) = bytes;
  }
}

template <int kCount>
struct Count {
  static constexpr int value = kCount;
};

// Calls `body` with a value of the element type, and the number of elements to move at once: as
// many as fit into 16 bytes if that number divides `width`, else one. Buffers are aligned to 16
// bytes.
template <class Body>
absl::Status ForElements(DType dtype, std::uint64_t width, Body body) {
  return ForElement(dtype, [&](auto element) {
    constexpr int kMost = kWidest<decltype(element)>;
    if (width % kMost == 0) {
      body(element, Count<kMost>{});
    } else {
      body(element, Count<1>{});
    }
  });
}

}  // namespace penstock::shard::cuda
