// A text that a shard turns into a vector (v1::EmbedText).
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "common/ids.h"

namespace penstock {

struct EmbedText {
  std::vector<TokenId> tokens;
  // Tokens from this one on are the second part of a pair of texts.
  std::uint32_t first_part = std::numeric_limits<std::uint32_t>::max();
};

}  // namespace penstock
