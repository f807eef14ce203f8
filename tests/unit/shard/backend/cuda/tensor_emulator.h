// The functions of shard/backend/cuda/kernels/tensor_core.cuh on the host, with the fragment
// layouts that it gives: the lanes of a warp meet, then each computes its own share.
#pragma once

#include <cstdint>

#include "tests/unit/shard/backend/cuda/emulator.h"

namespace penstock::shard::cuda {

void MultiplyAdd(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
void LoadMatrices(std::uint32_t (&out)[4], const Bf16* row);
void LoadTransposed(std::uint32_t (&out)[4], const Bf16* row);
void CopyAsync(Bf16* shared, const Bf16* global, bool there);
void EndCopyGroup();

namespace emulated {
void WaitForCopies(std::size_t open);
}
template <int kOpen>
void WaitForCopies() {
  emulated::WaitForCopies(kOpen);
}

std::uint32_t PickBytes(std::uint32_t low, std::uint32_t high, std::uint32_t choice);
std::uint32_t MultiplyPairs(std::uint32_t a, std::uint32_t b);
std::uint32_t SubtractPairs(std::uint32_t a, std::uint32_t b);

inline std::uint32_t PackPair(float low, float high) {
  return FromFloat<Bf16>(low).bits | std::uint32_t{FromFloat<Bf16>(high).bits} << 16;
}

}  // namespace penstock::shard::cuda
