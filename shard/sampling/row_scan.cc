#include "shard/sampling/row_scan.h"

#include <immintrin.h>

#include <algorithm>
#include <limits>

namespace penstock::shard {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Writes the maximum of each full block; true if there was NaN, which counts as -inf.
bool ScanBlocks(const float* x, std::size_t blocks, float* maxima) {
  const __m128 lowest = _mm_set1_ps(kMinusInfinity);
  __m128 nan = _mm_setzero_ps();
  for (std::size_t block = 0; block < blocks; ++block, x += kMaximumBlock) {
    __m128 best[4] = {lowest, lowest, lowest, lowest};
    for (std::size_t i = 0; i < kMaximumBlock; i += 16) {
      for (std::size_t j = 0; j < 4; ++j) {
        const __m128 value = _mm_loadu_ps(x + i + 4 * j);
        nan = _mm_or_ps(nan, _mm_cmpunord_ps(value, value));
        best[j] = _mm_max_ps(value, best[j]);  // the second operand when one is NaN
      }
    }
    const __m128 four = _mm_max_ps(_mm_max_ps(best[0], best[1]), _mm_max_ps(best[2], best[3]));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    maxima[block] = _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  return _mm_movemask_ps(nan) != 0;
}

// The same on eight lanes. A comparison of two values finds NaN in either.
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

// The block at the end that is not full.
bool ScanRest(std::span<const float> rest, float& maximum) {
  bool nan = false;
  maximum = kMinusInfinity;
  for (float value : rest) {
    nan |= value != value;
    if (value > maximum) maximum = value;
  }
  return nan;
}

// e^x for x <= 0: range reduction by ln 2 in two parts and a polynomial of degree 6 (Cephes, expf);
// 0 below -87.
__m128 Exp(__m128 x) {
  const __m128 kept = _mm_cmpnlt_ps(x, _mm_set1_ps(-87.0f));  // true for NaN, which stays
  x = _mm_and_ps(kept, x);
  const __m128i n = _mm_cvtps_epi32(_mm_mul_ps(x, _mm_set1_ps(1.44269504088896341f)));
  const __m128 whole = _mm_cvtepi32_ps(n);
  __m128 r = _mm_sub_ps(x, _mm_mul_ps(whole, _mm_set1_ps(0.693359375f)));
  r = _mm_add_ps(r, _mm_mul_ps(whole, _mm_set1_ps(2.12194440e-4f)));
  __m128 p = _mm_set1_ps(1.9875691500e-4f);
  for (float c :
       {1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f}) {
    p = _mm_add_ps(_mm_mul_ps(p, r), _mm_set1_ps(c));
  }
  p = _mm_add_ps(_mm_mul_ps(p, _mm_mul_ps(r, r)), _mm_add_ps(r, _mm_set1_ps(1.0f)));
  const __m128i power = _mm_slli_epi32(_mm_add_epi32(n, _mm_set1_epi32(127)), 23);
  return _mm_and_ps(kept, _mm_mul_ps(p, _mm_castsi128_ps(power)));
}

}  // namespace

double SumOfExponents(std::span<const float> logits, float maximum) {
  const __m128 shift = _mm_set1_ps(maximum);
  __m128d lower = _mm_setzero_pd();
  __m128d upper = _mm_setzero_pd();
  const auto add = [&](const float* from) {
    const __m128 terms = Exp(_mm_sub_ps(_mm_loadu_ps(from), shift));
    lower = _mm_add_pd(lower, _mm_cvtps_pd(terms));
    upper = _mm_add_pd(upper, _mm_cvtps_pd(_mm_movehl_ps(terms, terms)));
  };
  std::size_t i = 0;
  for (; i + 4 <= logits.size(); i += 4) add(logits.data() + i);
  if (i < logits.size()) {
    float rest[4] = {kMinusInfinity, kMinusInfinity, kMinusInfinity, kMinusInfinity};
    std::copy(logits.begin() + static_cast<std::ptrdiff_t>(i), logits.end(), rest);
    add(rest);
  }
  const __m128d both = _mm_add_pd(lower, upper);
  return _mm_cvtsd_f64(both) + _mm_cvtsd_f64(_mm_unpackhi_pd(both, both));
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
