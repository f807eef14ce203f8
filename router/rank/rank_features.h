// What the model of --rank-model sees of a request: integers, so that tools/rank/features.py
// computes the same ones. A change here is a new version of the file (rank_model.h).
//
//   0  prompt tokens
//   1  most output tokens, if the client gave a length; else 0
//   2  1 if it did
//   3  RequestClass
//   4  different token ids, modulo 4,096, in the last 512 tokens
//   5  and on: how often each word of the model occurs in the last 512 tokens. A word is one to
//      three token ids.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/request/request_class.h"

namespace penstock::router {

struct RankInput {
  std::span<const TokenId> prompt;
  std::uint32_t max_new_tokens = 0;
  bool length_given = false;
  RequestClass request_class = RequestClass::kOther;
};

// Immutable and thread-safe.
class RankFeatures {
 public:
  static constexpr std::size_t kFixed = 5;  // before the words
  static constexpr std::size_t kLastTokens = 512;
  static constexpr std::size_t kIdsCounted = 4096;
  static constexpr std::size_t kLongestWord = 3;

  // Each word has 1 to kLongestWord ids, and no two are equal.
  explicit RankFeatures(const std::vector<std::vector<TokenId>>& words);

  std::size_t size() const { return kFixed + words_; }
  std::vector<std::int32_t> Of(const RankInput& input) const;

 private:
  // The words as a tree of ids. Node 0 is the root.
  struct Node {
    std::int32_t word = -1;
  };
  std::size_t words_ = 0;
  std::vector<Node> nodes_{1};
  absl::flat_hash_map<std::pair<std::uint32_t, TokenId>, std::uint32_t> children_;
};

}  // namespace penstock::router
