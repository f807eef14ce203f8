// Format kernels for processors that multiply pairs of bfloat16 (AVX512_BF16); all of them multiply
// fours of int8, too (AVX512_VNNI).
#include "shard/backend/cpu/kernels/simd_avx512.h"
//
#include "shard/backend/cpu/formats/kernels/tables.h"
#include "shard/backend/cpu/kernels/vector_math.h"
//
#include "shard/backend/cpu/kernels/dot_product.h"
#include "shard/backend/cpu/kernels/products.h"
//
#include "shard/backend/cpu/formats/kernels/int8.h"
#include "shard/backend/cpu/formats/kernels/quantize.h"
//
#include "shard/backend/cpu/formats/kernels/fours_of_int4.h"
#include "shard/backend/cpu/formats/kernels/fours_of_int8.h"
#include "shard/backend/cpu/formats/kernels/gemm.h"
//
#include "shard/backend/cpu/formats/kernels/table_of.h"

namespace penstock::shard::cpu {
namespace {

// The same product with compressed weights. The permutation uses the last six bits of each byte as
// an index: with the 16 bytes of the table four times over, the last four bits decide.
struct CompressedDotProduct : DotProduct {
  using Plain = DotProduct;
  using Table = __m512i;
  static Table LoadTable(const std::byte* from) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
  [[gnu::always_inline]] static void ExpandHalf(const std::byte* group, int half, Table highs,
                                                Right (&lines)[2]) {
    __m512i numbers = _mm512_loadu_si512(group);
    if (half == 1) numbers = _mm512_srli_epi16(numbers, 4);
    const __m512i high = _mm512_permutexvar_epi8(numbers, highs);
    const __m512i low = _mm512_loadu_si512(group + (1 + half) * 64);
    lines[0] = _mm512_unpacklo_epi8(low, high);
    lines[1] = _mm512_unpackhi_epi8(low, high);
  }
};

}  // namespace

constexpr FormatTable kAvx512DotBFloat16Formats = [] {
  FormatTable table = FormatsOf<DotProduct, FoursOfInt8, FoursOfInt4>();
  table[FormatId::kCompressed] = FloatFormat<CompressedDotProduct>();
  return table;
}();

}  // namespace penstock::shard::cpu
