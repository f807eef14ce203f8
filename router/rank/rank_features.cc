#include "router/rank/rank_features.h"

#include <algorithm>
#include <bitset>
#include <limits>

namespace penstock::router {
namespace {

std::int32_t Clamped(std::size_t value) {
  constexpr std::size_t kMost = std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(std::min(value, kMost));
}

}  // namespace

RankFeatures::RankFeatures(const std::vector<std::vector<TokenId>>& words) : words_(words.size()) {
  for (std::size_t word = 0; word < words.size(); ++word) {
    std::uint32_t node = 0;
    for (const TokenId id : words[word]) {
      const auto next = static_cast<std::uint32_t>(nodes_.size());
      const auto [it, fresh] = children_.try_emplace({node, id}, next);
      if (fresh) nodes_.emplace_back();
      node = it->second;
    }
    nodes_[node].word = static_cast<std::int32_t>(word);
  }
}

std::vector<std::int32_t> RankFeatures::Of(const RankInput& input) const {
  std::vector<std::int32_t> features(size());
  const std::size_t count = std::min(input.prompt.size(), kLastTokens);
  const std::span<const TokenId> last = input.prompt.last(count);
  std::bitset<kIdsCounted> seen;
  for (std::size_t first = 0; first < count; ++first) {
    seen.set(static_cast<std::uint32_t>(last[first]) % kIdsCounted);
    std::uint32_t node = 0;
    const std::size_t end = std::min(count, first + kLongestWord);
    for (std::size_t i = first; i < end; ++i) {
      const auto child = children_.find({node, last[i]});
      if (child == children_.end()) break;
      node = child->second;
      const std::int32_t word = nodes_[node].word;
      if (word >= 0) ++features[kFixed + static_cast<std::size_t>(word)];
    }
  }
  features[0] = Clamped(input.prompt.size());
  features[1] = input.length_given ? Clamped(input.max_new_tokens) : 0;
  features[2] = input.length_given ? 1 : 0;
  features[3] = static_cast<std::int32_t>(input.request_class);
  features[4] = Clamped(seen.count());
  return features;
}

}  // namespace penstock::router
