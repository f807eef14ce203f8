// Format kernels of integers for processors with AVX-512 and AVX512_VNNI, whose other kernels are
// those of avx512.cc.
#include "shard/backend/cpu/kernels/simd_avx512.h"
//
#include "shard/backend/cpu/formats/kernels/tables.h"
#include "shard/backend/cpu/kernels/vector_math.h"
//
#include "shard/backend/cpu/kernels/products.h"
//
#include "shard/backend/cpu/formats/kernels/int8.h"
#include "shard/backend/cpu/formats/kernels/quantize.h"
//
#include "shard/backend/cpu/formats/kernels/fours_of_int4.h"
#include "shard/backend/cpu/formats/kernels/fours_of_int8.h"
#include "shard/backend/cpu/formats/kernels/gemm.h"
#include "shard/backend/cpu/formats/kernels/pairs_of_int16.h"
//
#include "shard/backend/cpu/formats/kernels/table_of.h"

namespace penstock::shard::cpu {

constexpr FormatKernels kAvx512VnniInt4 = IntegerFormat<FoursOfInt4, float>();
constexpr FormatKernels kAvx512VnniInt8 = IntegerFormat<FoursOfInt8, float>();
constexpr FormatKernels kAvx512VnniInt16 = [] {
  FormatKernels kernels = IntegerFormat<PairsOfInt16, float>();
  kernels.pack_panel = PackInt16;
  return kernels;
}();

}  // namespace penstock::shard::cpu
