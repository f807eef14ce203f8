// Products of weights of integers for processors with AVX-512 and AVX512_VNNI, whose other kernels
// are those of avx512.cc.
#include "shard/backend/cpu/kernels/simd_avx512.h"
//
#include "shard/backend/cpu/kernels/tables.h"
#include "shard/backend/cpu/kernels/vector_math.h"
//
#include "shard/backend/cpu/kernels/products.h"
//
#include "shard/backend/cpu/kernels/int8.h"
#include "shard/backend/cpu/kernels/quantize.h"
//
#include "shard/backend/cpu/kernels/fours_of_int8.h"
#include "shard/backend/cpu/kernels/gemm.h"
#include "shard/backend/cpu/kernels/pairs_of_int16.h"

namespace penstock::shard::cpu {

namespace {

template <class P>
constexpr IntegerKernels KernelsFor() {
  return {P::kPack, P::kLeft, Quantize<P, float>, Gemm<P, float>};
}

}  // namespace

constexpr IntegerKernels kAvx512VnniInt8 = KernelsFor<FoursOfInt8>();
constexpr IntegerKernels kAvx512VnniInt16 = KernelsFor<PairsOfInt16>();
void PackAvx512Int16(const PackInt16Args& args) { PackInt16(args); }

}  // namespace penstock::shard::cpu
