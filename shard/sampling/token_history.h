// How often each token occurs in a sequence, for the penalties. It follows from the token ids, so
// it can be rebuilt after a preemption or a restart.
//
// Threading: the model thread.
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

  // In no particular order.
  const std::unordered_map<TokenId, Count>& counts() const { return counts_; }

 private:
  std::unordered_map<TokenId, Count> counts_;
};

}  // namespace penstock::shard
