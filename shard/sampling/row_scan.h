// Passes over a whole row of logits, with the instructions of AVX2 where they are (the same bits
// without): in a vocabulary of 128k a search for the maximum takes some ten microseconds, a sum of
// exponents some eighty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace penstock::shard {

struct RowMaximum {
  std::uint32_t token = 0;  // the lowest of equal ones
  float logit = 0.0f;       // -inf when there is none above
  bool nan = false;         // the row holds NaN somewhere
};

RowMaximum FindMaximum(std::span<const float> logits);

// Sum of e^(logit - maximum), each term within two units of float32's last place, added in double.
// The same bits on every processor.
double SumOfExponents(std::span<const float> logits, float maximum);

// Tokens per entry of BlockMaxima.
inline constexpr std::size_t kMaximumBlock = 64;

// The largest logit of each block of kMaximumBlock tokens; NaN does not count.
void BlockMaxima(std::span<const float> logits, std::vector<float>& maxima);

}  // namespace penstock::shard
