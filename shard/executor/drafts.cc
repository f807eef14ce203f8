#include "shard/executor/drafts.h"

#include <algorithm>

namespace penstock::shard {
namespace {

// How many tokens before `end` equal those before the end of `tokens`.
std::size_t MatchLength(std::span<const TokenId> tokens, std::size_t end) {
  const std::size_t most = std::min(end, kLongestMatch);
  std::size_t length = 0;
  while (length < most && tokens[end - 1 - length] == tokens[tokens.size() - 1 - length]) ++length;
  return length;
}

}  // namespace

void FindDrafts(std::span<const TokenId> tokens, std::uint32_t most, std::vector<TokenId>& drafts) {
  drafts.clear();
  if (most == 0 || tokens.size() <= kLeastMatch) return;
  const std::size_t last = tokens.size() - std::min(tokens.size(), kLookBack);
  std::size_t best = kLeastMatch - 1;
  std::size_t from = 0;
  for (std::size_t end = tokens.size() - 1; end > last && best < kLongestMatch; --end) {
    if (tokens[end - 1] != tokens.back()) continue;
    const std::size_t length = MatchLength(tokens, end);
    if (length <= best) continue;
    best = length;
    from = end;
  }
  if (from == 0) return;
  for (std::size_t i = from; drafts.size() < most; ++i) {
    drafts.push_back(i < tokens.size() ? tokens[i] : drafts[i - tokens.size()]);
  }
}

std::uint32_t DraftPace::Take(std::uint32_t most) {
  if (pause_ > 0) {
    --pause_;
    return 0;
  }
  return std::min(most, length_);
}

void DraftPace::Learn(std::uint32_t drafted, std::uint32_t right) {
  if (drafted == 0) return;
  if (right == 0) {
    length_ = std::max(1u, drafted / 2);
    pause_ = next_pause_;
    next_pause_ = std::min(2 * next_pause_, kLongestPause);
    return;
  }
  next_pause_ = std::max(1u, next_pause_ / 2);
  length_ = right < drafted ? right : 2 * drafted;
}

}  // namespace penstock::shard
