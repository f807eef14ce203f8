// Format kernels for processors with AVX-512 (F, BW, DQ, VL).
#include "shard/backend/cpu/kernels/simd_avx512.h"
//
#include "shard/backend/cpu/formats/kernels/tables.h"
#include "shard/backend/cpu/kernels/vector_math.h"
//
#include "shard/backend/cpu/kernels/products.h"
//
#include "shard/backend/cpu/formats/kernels/int4.h"
#include "shard/backend/cpu/formats/kernels/int8.h"
#include "shard/backend/cpu/formats/kernels/quantize.h"
//
#include "shard/backend/cpu/formats/kernels/gemm.h"
//
#include "shard/backend/cpu/formats/kernels/table_of.h"

namespace penstock::shard::cpu {

constexpr FormatTable kAvx512Float32Formats = FormatsOf<Float32Product, PairsOfInt8, PairsOfInt4>();
constexpr FormatTable kAvx512BFloat16Formats = FormatsOf<WidenedPairs, PairsOfInt8, PairsOfInt4>();

}  // namespace penstock::shard::cpu
