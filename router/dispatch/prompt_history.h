// The newest prompts, to say why one missed the prefix cache (prefix_reason.h). Bounded in prompts
// and in tokens: the oldest are dropped.
//
// Thread-safe. Prompts are compared outside the mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "common/ids.h"

namespace penstock::router {

class PromptHistory {
 public:
  static constexpr std::size_t kMaxTokens = std::size_t{4} << 20;

  struct Entry {
    RequestId request;
    std::string tenant;
    std::vector<TokenId> ids;
    bool computed_whole = false;  // it reads nothing from the cache
  };
  using Kept = std::shared_ptr<const Entry>;

  // 0 prompts: none is kept.
  explicit PromptHistory(std::size_t max_prompts, std::size_t max_tokens = kMaxTokens)
      : max_prompts_(max_prompts), max_tokens_(max_tokens) {}

  void Add(RequestId request, const std::string& tenant, std::span<const TokenId> ids,
           bool computed_whole);

  // The prompts up to that of `request`, which is the last one. Empty: it is not among them.
  std::vector<Kept> UpTo(RequestId request) const;

 private:
  const std::size_t max_prompts_;
  const std::size_t max_tokens_;
  mutable std::mutex mutex_;
  std::deque<Kept> entries_;  // oldest first
  std::size_t tokens_ = 0;
};

// With how many equal tokens both begin.
std::uint32_t CommonTokens(std::span<const TokenId> a, std::span<const TokenId> b);

}  // namespace penstock::router
