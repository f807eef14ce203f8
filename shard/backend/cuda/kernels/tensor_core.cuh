// What attention on tensor cores needs of the hardware (sm_80 and newer): matrix products of a
// warp, loads of their operands and copies that run beside them. The fragments are those of PTX ISA
// 8.x, "mma.m16n8k16" and "ldmatrix"; lane l of a warp holds
//   A, 16 x 16: a[0] row l/4, a[1] row l/4 + 8, both columns 2 (l%4) and the next; a[2], a[3] the
//               same 8 columns on
//   B, 16 x 8:  b[0] rows 2 (l%4) and the next of column l/4; b[1] the same 8 rows down
//   C, 16 x 8:  c[0], c[1] row l/4, columns 2 (l%4) and the next; c[2], c[3] row l/4 + 8
// Two neighbours share a word, the first in its low half.
//
// The emulator of the tests has the same functions with the same layouts. There a copy is made when
// its thread waits for it and no sooner, so that a missing wait shows.
#pragma once

#include "shard/backend/cuda/kernels/portable.cuh"

#ifdef __CUDACC__

namespace penstock::shard::cuda {

// c += a * b.
__device__ inline void MultiplyAdd(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                   std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Four 8 x 8 matrices from shared memory. Lane l names row l%8 of matrix l/8, 16 bytes at a
// multiple of 16; it gets of matrix i in out[i] row l/4, columns 2 (l%4) and the next.
__device__ inline void LoadMatrices(std::uint32_t (&out)[4], const Bf16* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}

// The same, but of each matrix rows 2 (l%4) and the next, column l/4.
__device__ inline void LoadTransposed(std::uint32_t (&out)[4], const Bf16* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(address)
               : "memory");
}

// Begins to copy 16 bytes into shared memory, zeros where `there` is false; `global` must be an
// address of the allocation either way. Complete after WaitForCopies.
__device__ inline void CopyAsync(Bf16* shared, const Bf16* global, bool there) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(global),
               "r"(there ? 16 : 0)
               : "memory");
}

// Ends a group of the thread's copies, which may be empty.
__device__ inline void EndCopyGroup() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all copy groups of the thread except the newest kOpen are complete.
template <int kOpen>
__device__ void WaitForCopies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
}

// Four of the eight bytes of `low` and `high`. The lowest nibble of `choice` numbers the lowest
// byte. A nibble with its upper bit set gives the sign of its byte, eight times.
__device__ inline std::uint32_t PickBytes(std::uint32_t low, std::uint32_t high,
                                          std::uint32_t choice) {
  std::uint32_t picked;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(picked) : "r"(low), "r"(high), "r"(choice));
  return picked;
}

// Of the two bfloat16 of a word each. Subnormal values count.
__device__ inline std::uint32_t MultiplyPairs(std::uint32_t a, std::uint32_t b) {
  __nv_bfloat162 pairs[2];
  memcpy(&pairs[0], &a, sizeof a);
  memcpy(&pairs[1], &b, sizeof b);
  pairs[0] = __hmul2(pairs[0], pairs[1]);
  memcpy(&a, &pairs[0], sizeof a);
  return a;
}
__device__ inline std::uint32_t SubtractPairs(std::uint32_t a, std::uint32_t b) {
  __nv_bfloat162 pairs[2];
  memcpy(&pairs[0], &a, sizeof a);
  memcpy(&pairs[1], &b, sizeof b);
  pairs[0] = __hsub2(pairs[0], pairs[1]);
  memcpy(&a, &pairs[0], sizeof a);
  return a;
}

// Two floats, rounded, in one word.
__device__ inline std::uint32_t PackPair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  std::uint32_t bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

}  // namespace penstock::shard::cuda
#endif
