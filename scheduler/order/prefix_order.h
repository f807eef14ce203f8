// Order::kLongestPrefix: the request with most prompt tokens in the prefix cache is next. For a
// batch known in advance, and a cache that holds the longest request, this is a depth-first walk
// over the tree of prompts, which computes every shared block once (SGLang, NeurIPS 2024, theorem
// 3.1).
//
// A cache look-up for every waiting request at every admission would cost too much. Only these are
// looked up:
//   * the two neighbours, in the order of their tokens, of the last request that was named for the
//     group: no other request shares more tokens with it
//   * the best others by an estimate. The estimate begins as the length of the prompt, which is
//     never too small, and every look-up corrects it.
//   * the request that has waited longest
//
// The longest match wins. Of equal matches a neighbour wins, so that a subtree is finished before
// the next one begins. Else the earliest arrival wins. It costs O(log n) comparisons of prompts and
// a few look-ups. The queue bounds starvation, as for every order.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "scheduler/order/order_policy.h"
#include "scheduler/order/waiting_request.h"

namespace penstock::scheduler {

class PrefixOrder final : public OrderPolicy {
 public:
  // Leading tokens of the request that the prefix cache of the group has.
  using CachedTokens = std::function<std::uint64_t(GroupId, const Work&)>;

  explicit PrefixOrder(CachedTokens cached_tokens) : cached_tokens_(std::move(cached_tokens)) {}

  void Add(WaitingRequest& request) override;
  void Remove(WaitingRequest& request) override;
  WaitingRequest* Next(GroupId group) override;
  WaitingRequest* First() override { return nullptr; }
  WaitingRequest* Before(const WaitingRequest&) override { return nullptr; }
  WaitingRequest* After(const WaitingRequest&) override { return nullptr; }

 private:
  struct ByTokens {
    bool operator()(const Work* a, const Work* b) const;
  };
  struct Estimate {
    std::uint64_t tokens = 0;
    std::uint64_t number = 0;
    WaitingRequest* request = nullptr;
    friend bool operator<(const Estimate& a, const Estimate& b) {
      return a.tokens != b.tokens ? a.tokens > b.tokens : a.number < b.number;
    }
  };
  // The request that was last named for a group.
  struct Last {
    const WaitingRequest* named = nullptr;  // while it waits
    Work left;                              // after it left: its tenant, adapter, prompt and number
    bool has_left = false;
  };

  void Correct(WaitingRequest& request, std::uint64_t tokens);

  const CachedTokens cached_tokens_;
  std::set<WaitingRequest*, ByTokens> by_tokens_;
  std::map<std::uint64_t, WaitingRequest*> by_number_;
  std::set<Estimate> by_estimate_;
  std::unordered_map<const WaitingRequest*, std::uint64_t> estimates_;  // tokens; never iterated
  std::map<GroupId, Last> last_;
};

}  // namespace penstock::scheduler
