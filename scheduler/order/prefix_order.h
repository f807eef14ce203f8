// Order::kLongestPrefix: who finds most of its prompt in the prefix cache goes first. For a batch
// known in advance and a cache that holds the longest request this is a depth-first walk over the
// tree of prompts, which computes every shared block once (SGLang, NeurIPS 2024, theorem 3.1).
//
// Asking the cache about every waiting request for every admission would cost too much. It is asked
// about few, since prompts are kept in the order of their tokens, where those that begin alike are
// neighbours:
//   * the two neighbours of whom this policy named last for the group (nobody shares more with it);
//   * the best of the others by an estimate that is put right when it is looked at: at first the
//     length of the prompt, which nothing exceeds, then what the cache had;
//   * who waits longest.
// The greatest match goes first; of equals the neighbours, so that a subtree is finished before the
// next is begun, then who arrived first. O(log n) comparisons of prompts and a handful of look-ups.
// Starvation is bounded by the queue, as for every order.
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
  // Leading tokens of the request that the group has in its cache.
  using CachedTokens = std::function<std::uint64_t(GroupId, const Work&)>;

  explicit PrefixOrder(CachedTokens cached_tokens) : cached_tokens_(std::move(cached_tokens)) {}

  void Add(WaitingRequest& request) override;
  void Remove(WaitingRequest& request) override;
  WaitingRequest* Next(GroupId group) override;
  WaitingRequest* Before(const WaitingRequest& request) override;
  WaitingRequest* After(const WaitingRequest& request) override;

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
  // Whom a group was named last, and what of it tells its neighbours.
  struct Last {
    const WaitingRequest* named = nullptr;  // while it waits
    Work gone;                              // once it has left
    bool has_gone = false;
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
