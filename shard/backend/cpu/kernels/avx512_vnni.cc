// Products of int8 weights for processors with AVX-512 and AVX512_VNNI, whose other kernels are
// those of avx512.cc.
#include "shard/backend/cpu/kernels/simd_avx512.h"
//
#include "shard/backend/cpu/kernels/tables.h"
#include "shard/backend/cpu/kernels/vector_math.h"
//
#include "shard/backend/cpu/kernels/products.h"
//
#include "shard/backend/cpu/kernels/int8.h"
//
#include "shard/backend/cpu/kernels/fours_of_int8.h"
#include "shard/backend/cpu/kernels/gemm.h"

namespace penstock::shard::cpu {

constexpr Int8Kernels kAvx512VnniInt8 = {FoursOfInt8::kLeft, Quantize<FoursOfInt8, float>,
                                         Gemm<FoursOfInt8, float>};

}  // namespace penstock::shard::cpu
