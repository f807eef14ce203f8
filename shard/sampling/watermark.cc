#include "shard/sampling/watermark.h"

#include <cmath>
#include <cstddef>

namespace penstock::shard {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;

std::uint64_t SeedOf(TokenId before) {
  return kWatermarkHashKey * static_cast<std::uint64_t>(before);
}

// The output of SplitMix64 for the state `z`.
std::uint32_t UpperHalf(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
}

double Threshold(double gamma) { return gamma * 0x1p32; }

}  // namespace

bool IsGreen(TokenId before, TokenId token, double gamma) {
  const std::uint64_t state = SeedOf(before) + (static_cast<std::uint64_t>(token) + 1) * kGolden;
  return UpperHalf(state) < Threshold(gamma);
}

void FavourGreen(const WatermarkSettings& settings, TokenId before, std::span<float> logits) {
  const double threshold = Threshold(settings.gamma);
  const auto delta = static_cast<float>(settings.delta);
  std::uint64_t state = SeedOf(before);
  for (float& logit : logits) {
    state += kGolden;
    if (UpperHalf(state) < threshold) logit += delta;
  }
}

double WatermarkScore(std::span<const TokenId> tokens, double gamma) {
  if (tokens.size() < 2) return 0;
  const auto scored = static_cast<double>(tokens.size() - 1);
  double green = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    if (IsGreen(tokens[i - 1], tokens[i], gamma)) ++green;
  }
  return (green - gamma * scored) / std::sqrt(scored * gamma * (1 - gamma));
}

}  // namespace penstock::shard
