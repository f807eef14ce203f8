// Which tokens a sequence has seen, as the penalties need it. Built from token ids alone, so it can
// be rebuilt after preemption or restart. Owned by a slot; model thread only.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "common/ids.h"

namespace penstock::shard {

class TokenHistory {
 public:
  struct Count {
    std::uint32_t prompt = 0;
    std::uint32_t generated = 0;
  };

  void AddPrompt(std::span<const TokenId> tokens) {
    for (TokenId token : tokens) ++counts_[token].prompt;
  }
  void AddGenerated(TokenId token) { ++counts_[token].generated; }

  // Distinct tokens in no particular order: each is processed once, so the order cannot matter.
  const std::unordered_map<TokenId, Count>& counts() const { return counts_; }

 private:
  std::unordered_map<TokenId, Count> counts_;
};

}  // namespace penstock::shard
