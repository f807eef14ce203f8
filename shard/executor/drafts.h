// Self-speculation: guesses what a sequence will say by looking where it, prompt and output, has
// ended like that before (prompt lookup decoding, Saxena 2023; LLMA, arXiv:2304.04487). Guesses
// cost rows of a step, never bits: a step computes them behind the newest token, and one is kept
// only where it is what the sampler chooses there.
//
// A sequence whose guesses are wrong guesses less, then pauses. All of it follows from the tokens
// and from how many guesses were asked for, so every rank guesses the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.h"

namespace penstock::shard {

// The shortest ending that must have occurred before: one token alone says nothing.
inline constexpr std::size_t kLeastMatch = 2;
// A longer match is not better than one of this length.
inline constexpr std::size_t kLongestMatch = 8;
// So many of the newest tokens are looked through.
inline constexpr std::size_t kLookBack = 16384;

// What followed the newest of the longest matches, at most `most` tokens; where that reaches the
// end of `tokens`, it goes on with what was drafted itself. Empty without a match. `drafts` is
// overwritten.
void FindDrafts(std::span<const TokenId> tokens, std::uint32_t most, std::vector<TokenId>& drafts);

// How much one sequence may guess now.
class DraftPace {
 public:
  // Of `most` drafts that a step has room for; counts the step.
  std::uint32_t Take(std::uint32_t most);
  // What came of the drafts of a step.
  void Learn(std::uint32_t drafted, std::uint32_t right);

 private:
  static constexpr std::uint32_t kLongestPause = 32;

  std::uint32_t length_ = UINT32_MAX;  // most drafts of a step
  std::uint32_t pause_ = 0;            // steps without drafts
  std::uint32_t next_pause_ = 1;
};

}  // namespace penstock::shard
