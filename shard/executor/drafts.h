// Self-speculation: drafts the next tokens of a sequence from an earlier place where its prompt or
// output had the same last tokens (prompt lookup decoding, Saxena 2023; LLMA, arXiv:2304.04487). A
// step computes the drafts after the newest token. A draft is kept only if the sampler chooses the
// same token, so drafts cost rows but never change the output.
//
// After wrong drafts a sequence drafts fewer tokens, then pauses. All this follows from the tokens
// and the number of requested drafts, so every rank drafts the same.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.h"

namespace penstock::shard {

// The least number of last tokens that must have occurred before.
inline constexpr std::size_t kLeastMatch = 2;
// A longer match counts as one of this length.
inline constexpr std::size_t kLongestMatch = 8;
// How many of the newest tokens are searched.
inline constexpr std::size_t kLookBack = 16384;

// Sets `drafts` to at most `most` tokens that followed the longest match, the newest of equal ones.
// At the end of `tokens` it continues with the first drafts. Empty without a match.
void FindDrafts(std::span<const TokenId> tokens, std::uint32_t most, std::vector<TokenId>& drafts);

// How many tokens one sequence may draft now.
class DraftPace {
 public:
  // The number of drafts of the next step, at most `most`.
  std::uint32_t Take(std::uint32_t most);
  // The result of a step: how many tokens were drafted and how many were right.
  void Learn(std::uint32_t drafted, std::uint32_t right);

 private:
  static constexpr std::uint32_t kLongestPause = 32;

  std::uint32_t length_ = UINT32_MAX;  // most drafts of a step
  std::uint32_t pause_ = 0;            // steps without drafts
  std::uint32_t next_pause_ = 1;
};

}  // namespace penstock::shard
