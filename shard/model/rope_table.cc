#include "shard/model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace penstock::shard {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

// The formulas are those of transformers' modeling_rope_utils.py.
float Llama3Frequency(const RopeSpec& rope, float frequency) {
  const double wavelength = kTwoPi / frequency;
  if (wavelength < rope.original_max_position / rope.high_freq_factor) return frequency;
  const auto slow = static_cast<float>(frequency / rope.factor);
  if (wavelength > rope.original_max_position / rope.low_freq_factor) return slow;
  const double smooth = (rope.original_max_position / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return static_cast<float>((1.0 - smooth) * frequency / rope.factor + smooth * frequency);
}

// The dimension whose wavelength makes `rotations` turns over the original context.
double YarnDimension(const RopeSpec& rope, double rotations) {
  return rope.dim * std::log(rope.original_max_position / (rotations * kTwoPi)) /
         (2.0 * std::log(rope.theta));
}

void ApplyYarn(const RopeSpec& rope, std::vector<float>& frequencies) {
  double low = YarnDimension(rope, rope.beta_fast);
  double high = YarnDimension(rope, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, rope.dim - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double original = frequencies[i];
    frequencies[i] = static_cast<float>(original / rope.factor * ramp + original * (1.0 - ramp));
  }
}

// The base of the frequencies of a text that is longer than the original length.
double DynamicTheta(const RopeSpec& rope, std::uint32_t length) {
  const auto original = static_cast<float>(rope.original_max_position);
  const float stretched = static_cast<float>(rope.factor) * static_cast<float>(length) / original;
  const float growth = stretched - static_cast<float>(rope.factor - 1.0);
  const auto exponent = static_cast<float>(rope.dim / (rope.dim - 2.0));
  return static_cast<float>(rope.theta) * std::pow(growth, exponent);
}

}  // namespace

std::vector<float> RopeFrequencies(const RopeSpec& rope, std::uint32_t length) {
  const bool longer = length > rope.original_max_position;
  const bool dynamic = rope.type == RopeType::kDynamic && longer;
  const double theta = dynamic ? DynamicTheta(rope, length) : rope.theta;
  const std::vector<double>& factors = longer ? rope.long_factors : rope.factors;
  std::vector<float> frequencies(rope.dim / 2);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rope.dim);
    const auto wavelength = static_cast<float>(std::pow(theta, double{exponent}));
    const bool scaled = rope.type == RopeType::kLongrope;
    frequencies[i] = 1.0f / (scaled ? static_cast<float>(factors[i]) * wavelength : wavelength);
    if (rope.type == RopeType::kProportional) {
      frequencies[i] = i < rope.turning ? frequencies[i] / static_cast<float>(rope.factor) : 0.0f;
    }
    if (rope.type == RopeType::kLinear) frequencies[i] /= static_cast<float>(rope.factor);
    if (rope.type == RopeType::kLlama3) frequencies[i] = Llama3Frequency(rope, frequencies[i]);
  }
  if (rope.type == RopeType::kYarn) ApplyYarn(rope, frequencies);
  return frequencies;
}

void SetAngles(const RopeSpec& rope, std::span<const float> frequencies, std::uint32_t position,
               float* cos, float* sin) {
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double angle = static_cast<float>(position) * frequencies[i];
    cos[i] = static_cast<float>(std::cos(angle) * rope.attention_factor);
    sin[i] = static_cast<float>(std::sin(angle) * rope.attention_factor);
  }
}

RopeTable BuildRopeTable(const RopeSpec& rope, std::uint32_t positions) {
  const std::vector<float> frequencies = RopeFrequencies(rope);
  const std::size_t size = frequencies.size();
  RopeTable table{std::vector<float>(positions * size), std::vector<float>(positions * size)};
  for (std::uint32_t position = 0; position < positions; ++position) {
    SetAngles(rope, frequencies, position, table.cos.data() + position * size,
              table.sin.data() + position * size);
  }
  return table;
}

}  // namespace penstock::shard
