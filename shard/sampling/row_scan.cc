#include "shard/sampling/row_scan.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>

namespace penstock::shard {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Writes the maximum of each full block. A NaN counts as -inf; returns true if there was one.
bool ScanBlocks(const float* x, std::size_t blocks, float* maxima) {
  const __m128 lowest = _mm_set1_ps(kMinusInfinity);
  __m128 nan = _mm_setzero_ps();
  for (std::size_t block = 0; block < blocks; ++block, x += kMaximumBlock) {
    __m128 best[4] = {lowest, lowest, lowest, lowest};
    for (std::size_t i = 0; i < kMaximumBlock; i += 16) {
      for (std::size_t j = 0; j < 4; ++j) {
        const __m128 value = _mm_loadu_ps(x + i + 4 * j);
        nan = _mm_or_ps(nan, _mm_cmpunord_ps(value, value));
        best[j] = _mm_max_ps(value, best[j]);  // the second operand if one is NaN
      }
    }
    const __m128 four = _mm_max_ps(_mm_max_ps(best[0], best[1]), _mm_max_ps(best[2], best[3]));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    maxima[block] = _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  return _mm_movemask_ps(nan) != 0;
}

// The same with vectors of eight. Comparing two values finds a NaN in either.
__attribute__((target("avx2"))) bool ScanBlocksAvx2(const float* x, std::size_t blocks,
                                                    float* maxima) {
  const __m256 lowest = _mm256_set1_ps(kMinusInfinity);
  __m256 nan = _mm256_setzero_ps();
  for (std::size_t block = 0; block < blocks; ++block, x += kMaximumBlock) {
    __m256 best[4] = {lowest, lowest, lowest, lowest};
    for (std::size_t j = 0; j < 4; ++j) {
      const __m256 a = _mm256_loadu_ps(x + 16 * j);
      const __m256 b = _mm256_loadu_ps(x + 16 * j + 8);
      nan = _mm256_or_ps(nan, _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
      best[j] = _mm256_max_ps(b, _mm256_max_ps(a, best[j]));
    }
    const __m256 eight =
        _mm256_max_ps(_mm256_max_ps(best[0], best[1]), _mm256_max_ps(best[2], best[3]));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    maxima[block] = _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  return _mm256_movemask_ps(nan) != 0;
}

bool Scan(const float* x, std::size_t blocks, float* maxima) {
  static const auto scan = __builtin_cpu_supports("avx2") ? ScanBlocksAvx2 : ScanBlocks;
  return scan(x, blocks, maxima);
}

// The incomplete block at the end.
bool ScanRest(std::span<const float> rest, float& maximum) {
  bool nan = false;
  maximum = kMinusInfinity;
  for (float value : rest) {
    nan |= value != value;
    if (value > maximum) maximum = value;
  }
  return nan;
}

// Partial sums of the sum of exponents, on every processor: one operation of AVX2 or two of SSE2.
// Each partial sum has the same terms and no operation is fused, so the bits are the same.
constexpr std::size_t kLanes = 8;
using Floats = float __attribute__((vector_size(4 * kLanes)));
using Integers = std::int32_t __attribute__((vector_size(4 * kLanes)));

// e^x for x <= 0: range reduction by ln 2 in two parts and a polynomial of degree 6 (Cephes, expf).
// The terms are added in pairs, which shortens the chain of dependent operations. Below -87 the
// result is e^-87, which does not matter in a sum with e^0.
[[gnu::always_inline]] inline void Exp(Floats& x) {
  // Adding and subtracting it rounds to an integer. In between the lowest bits hold that integer.
  constexpr float kRounds = 12582912.0f;  // 1.5 * 2^23
  const Floats smallest = Floats{} - 87.0f;
  x = x < smallest ? smallest : x;  // keeps a NaN
  const Floats shifted = x * 1.44269504088896341f + kRounds;
  const Floats whole = shifted - kRounds;
  const Floats r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  const Floats square = r * r;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * square + (r * 8.3334519073e-3f + 4.1665795894e-2f);
  p = p * square + (r * 1.6666665459e-1f + 5.0000001201e-1f);
  p = p * square + (r + 1.0f);
  const Integers power = (reinterpret_cast<Integers>(shifted) << 23) + (127 << 23);
  x = p * reinterpret_cast<Floats>(power);
}

// Calls add(terms, sums) for every kLanes exponents, alternating between two sets of sums.
template <class Sums, class Add>
[[gnu::always_inline]] inline void ForExponents(std::span<const float> logits, float maximum,
                                                Sums (&sums)[2], const Add& add) {
  const auto next = [&](const float* from, Sums& into) __attribute__((always_inline)) {
    Floats x;
    std::memcpy(&x, from, sizeof(x));
    x = x - maximum;
    Exp(x);
    add(x, into);
  };
  std::size_t i = 0;
  for (; i + 2 * kLanes <= logits.size(); i += 2 * kLanes) {
    next(logits.data() + i, sums[0]);
    next(logits.data() + i + kLanes, sums[1]);
  }
  if (i == logits.size()) return;
  float rest[2 * kLanes];
  std::fill(std::begin(rest), std::end(rest), kMinusInfinity);
  std::copy(logits.begin() + static_cast<std::ptrdiff_t>(i), logits.end(), rest);
  next(rest, sums[0]);
  next(rest + kLanes, sums[1]);
}

template <class Sums>
double Total(const Sums (&sums)[2]) {
  double lanes[2 * kLanes];
  static_assert(sizeof(lanes) == sizeof(sums));
  std::memcpy(lanes, sums, sizeof(lanes));
  return std::accumulate(std::begin(lanes), std::end(lanes), 0.0);
}

double SumWithSse2(std::span<const float> logits, float maximum) {
  struct Sums {
    __m128d lanes[4] = {};
  };
  Sums sums[2];
  ForExponents(logits, maximum, sums, [](const Floats& x, Sums& into) {
    for (int i = 0; i < 2; ++i) {
      __m128 terms;
      std::memcpy(&terms, reinterpret_cast<const float*>(&x) + 4 * i, sizeof(terms));
      into.lanes[2 * i] = _mm_add_pd(into.lanes[2 * i], _mm_cvtps_pd(terms));
      const __m128 upper = _mm_movehl_ps(terms, terms);
      into.lanes[2 * i + 1] = _mm_add_pd(into.lanes[2 * i + 1], _mm_cvtps_pd(upper));
    }
  });
  return Total(sums);
}

__attribute__((target("avx2"))) double SumWithAvx2(std::span<const float> logits, float maximum) {
  struct Sums {
    __m256d lower = {};
    __m256d upper = {};
  };
  Sums sums[2];
  const auto add = [](const Floats& x, Sums& into) __attribute__((target("avx2"))) {
    const __m256 terms = reinterpret_cast<const __m256&>(x);
    into.lower = _mm256_add_pd(into.lower, _mm256_cvtps_pd(_mm256_castps256_ps128(terms)));
    into.upper = _mm256_add_pd(into.upper, _mm256_cvtps_pd(_mm256_extractf128_ps(terms, 1)));
  };
  ForExponents(logits, maximum, sums, add);
  return Total(sums);
}

}  // namespace

double SumOfExponents(std::span<const float> logits, float maximum) {
  static const auto sum = __builtin_cpu_supports("avx2") ? SumWithAvx2 : SumWithSse2;
  return sum(logits, maximum);
}

RowMaximum FindMaximum(std::span<const float> logits) {
  constexpr std::size_t kAtOnce = 64;
  RowMaximum best{0, kMinusInfinity, false};
  std::size_t at = 0;
  const auto take = [&](float maximum, std::size_t first) {
    if (maximum <= best.logit) return;
    best.logit = maximum;
    at = first;
  };
  const std::size_t blocks = logits.size() / kMaximumBlock;
  float maxima[kAtOnce];
  for (std::size_t block = 0; block < blocks; block += kAtOnce) {
    const std::size_t count = std::min(kAtOnce, blocks - block);
    best.nan |= Scan(logits.data() + block * kMaximumBlock, count, maxima);
    for (std::size_t i = 0; i < count; ++i) take(maxima[i], (block + i) * kMaximumBlock);
  }
  float last = kMinusInfinity;
  best.nan |= ScanRest(logits.subspan(blocks * kMaximumBlock), last);
  take(last, blocks * kMaximumBlock);
  if (best.logit == kMinusInfinity) return best;
  const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(at);
  best.token =
      static_cast<std::uint32_t>(std::find(begin, logits.end(), best.logit) - logits.begin());
  return best;
}

void BlockMaxima(std::span<const float> logits, std::vector<float>& maxima) {
  const std::size_t blocks = logits.size() / kMaximumBlock;
  maxima.resize(blocks);
  Scan(logits.data(), blocks, maxima.data());
  if (blocks * kMaximumBlock == logits.size()) return;
  ScanRest(logits.subspan(blocks * kMaximumBlock), maxima.emplace_back());
}

}  // namespace penstock::shard
