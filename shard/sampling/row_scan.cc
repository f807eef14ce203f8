#include "shard/sampling/row_scan.h"

#include <emmintrin.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>

namespace penstock::shard {
namespace {

// Writes the maximum of each full block. A NaN counts as -inf; returns true if there was one.
bool Scan(const float* x, std::size_t blocks, float* maxima) {
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

// Eight values: one operation of AVX2 or two of SSE2. No operation is fused, so the bits are the
// same on every processor.
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

// Two sets of partial sums, used in turn. Each partial sum has the same terms on every processor.
[[gnu::always_inline]] inline double Sum(std::span<const float> logits, float maximum) {
  using Half = float __attribute__((vector_size(2 * kLanes)));
  using Doubles = double __attribute__((vector_size(4 * kLanes)));
  Doubles sums[2][2] = {};
  const auto add = [maximum](const float* from, Doubles(&into)[2]) __attribute__((always_inline)) {
    Floats x;
    std::memcpy(&x, from, sizeof(x));
    x = x - maximum;
    Exp(x);
    Half halves[2];
    std::memcpy(halves, &x, sizeof(x));
    into[0] += __builtin_convertvector(halves[0], Doubles);
    into[1] += __builtin_convertvector(halves[1], Doubles);
  };
  std::size_t i = 0;
  for (; i + 2 * kLanes <= logits.size(); i += 2 * kLanes) {
    add(logits.data() + i, sums[0]);
    add(logits.data() + i + kLanes, sums[1]);
  }
  if (i < logits.size()) {
    float rest[2 * kLanes];
    std::fill(std::begin(rest), std::end(rest), kMinusInfinity);
    std::copy(logits.begin() + static_cast<std::ptrdiff_t>(i), logits.end(), rest);
    add(rest, sums[0]);
    add(rest + kLanes, sums[1]);
  }
  double lanes[2 * kLanes];
  std::memcpy(lanes, sums, sizeof(lanes));
  return std::accumulate(std::begin(lanes), std::end(lanes), 0.0);
}

double SumWithSse2(std::span<const float> logits, float maximum) { return Sum(logits, maximum); }

__attribute__((target("avx2"))) double SumWithAvx2(std::span<const float> logits, float maximum) {
  return Sum(logits, maximum);
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
