// Kernels for processors that multiply pairs of bfloat16 (AVX512_BF16); all of them multiply fours
// of int8, too (AVX512_VNNI).
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
#include "shard/backend/cpu/kernels/attention.h"
#include "shard/backend/cpu/kernels/cells.h"
#include "shard/backend/cpu/kernels/fours_of_int8.h"
#include "shard/backend/cpu/kernels/gemm.h"
#include "shard/backend/cpu/kernels/rows.h"
#include "shard/backend/cpu/kernels/scaled_cells.h"
#include "shard/backend/cpu/kernels/similarity.h"
#include "shard/backend/cpu/kernels/table_of.h"

namespace penstock::shard::cpu {
namespace {

// Two bfloat16 products join a float32 sum in one instruction, in the processor's fixed order.
struct DotProduct {
  using Activation = std::uint16_t;
  using Weight = std::uint16_t;
  using Right = __m512i;
  static constexpr std::size_t kPack = 2;
  static constexpr std::size_t kLeft = kPack;
  static constexpr int kParts = 1;
  static constexpr int kSpare = 2;
  static Right LoadRight(const std::uint16_t* from) { return _mm512_loadu_si512(from); }
  static Vec Step(Vec sum, const std::uint16_t* left, Right right) {
    std::int32_t pair;
    __builtin_memcpy(&pair, left, sizeof pair);
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair)),
                            reinterpret_cast<__m512bh>(right));
  }
};

// The same product with coded weights. A permutation takes the last six bits of each byte as an
// index: with the 16 bytes of the table four times over, the last four decide.
struct CodedDotProduct : DotProduct {
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

constexpr Kernels kAvx512DotBFloat16 = [] {
  Kernels kernels = TableOf<DotProduct, FoursOfInt8, DotProduct, DotProduct>(
      Isa::kAvx512Bf16, DType::kBFloat16, DType::kBFloat16);
  kernels.coded_gemm = Gemm<CodedDotProduct, DotProduct::Activation>;
  return kernels;
}();

}  // namespace penstock::shard::cpu
