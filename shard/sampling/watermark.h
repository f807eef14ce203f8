// The green-list watermark of Kirchenbauer et al. 2023 (arXiv:2301.10226), as in TGI: before
// anything else, `delta` is added to the logits of the green tokens, about a share `gamma` of the
// vocabulary that the token before chooses.
//
// The choice, part of the interface, so that anybody can detect it (docs/api/watermark.md has the
// same in Python):
//   seed   = 15485863 * id of the token before, as unsigned 64 bits
//   output = SplitMix64 (Steele, Lea, Flood 2014), started with seed; token t takes the t-th
//            output, counted from 0:
//              z = seed + (t + 1) * 0x9E3779B97F4A7C15
//              z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9
//              z = (z ^ z >> 27) * 0x94D049BB133111EB
//              z = z ^ z >> 31
//   green  = (z >> 32) < gamma * 2^32
#pragma once

#include <cstdint>
#include <span>

#include "common/ids.h"

namespace penstock::shard {

struct WatermarkSettings {
  double gamma = 0.5;  // (0, 1)
  double delta = 2.0;
};

inline constexpr std::uint64_t kWatermarkHashKey = 15485863;

bool IsGreen(TokenId before, TokenId token, double gamma);

// Some 0.15 ms for a vocabulary of 128,000.
void FavourGreen(const WatermarkSettings& settings, TokenId before, std::span<float> logits);

// The detector: z = (green - gamma T) / sqrt(T gamma (1 - gamma)) over the T tokens behind the
// first. Around 0 without the watermark (standard normal); 4 says that it is there with one error
// in 30,000.
double WatermarkScore(std::span<const TokenId> tokens, double gamma);

}  // namespace penstock::shard
