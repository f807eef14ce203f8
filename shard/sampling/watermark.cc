#include "shard/sampling/watermark.h"

#include <cstddef>

namespace penstock::shard {
namespace {

constexpr std::uint64_t kHashKey = 15485863;
constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15u;

// The output of SplitMix64 for the state `z`.
std::uint32_t UpperHalf(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
}

}  // namespace

void FavourGreen(const WatermarkSettings& settings, TokenId before, std::span<float> logits) {
  const double threshold = settings.gamma * 0x1p32;
  const auto delta = static_cast<float>(settings.delta);
  std::uint64_t state = kHashKey * static_cast<std::uint64_t>(before);
  for (float& logit : logits) {
    state += kGolden;
    if (UpperHalf(state) < threshold) logit += delta;
  }
}

}  // namespace penstock::shard
