#include "scheduler/order/prefix_order.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "common/check.h"

namespace penstock::scheduler {
namespace {

constexpr int kMaxEstimates = 4;  // that one call of Next looks up

}  // namespace

bool PrefixOrder::ByTokens::operator()(const Work* a, const Work* b) const {
  const Arrival& left = a->request;
  const Arrival& right = b->request;
  return std::tie(left.tenant, left.adapter_id, left.prompt, a->number) <
         std::tie(right.tenant, right.adapter_id, right.prompt, b->number);
}

void PrefixOrder::Add(WaitingRequest& request) {
  PENSTOCK_CHECK(by_tokens_.insert(&request).second, "a request waits once");
  by_number_.emplace(request.number, &request);
  const std::uint64_t most = request.request.prompt.size();
  estimates_.emplace(&request, most);
  by_estimate_.insert({most, request.number, &request});
}

void PrefixOrder::Remove(WaitingRequest& request) {
  PENSTOCK_CHECK(by_tokens_.erase(&request) == 1, "only a waiting request is removed");
  by_number_.erase(request.number);
  const auto estimate = estimates_.find(&request);
  by_estimate_.erase({estimate->second, request.number, nullptr});
  estimates_.erase(estimate);
  for (auto& [group, last] : last_) {
    if (last.named != &request) continue;
    last.named = nullptr;
    last.left.request.tenant = request.request.tenant;
    last.left.request.adapter_id = request.request.adapter_id;
    last.left.request.prompt = request.request.prompt;
    last.left.number = request.number;
    last.has_left = true;
  }
}

void PrefixOrder::Correct(WaitingRequest& request, std::uint64_t tokens) {
  std::uint64_t& estimate = estimates_.at(&request);
  if (estimate == tokens) return;
  by_estimate_.erase({estimate, request.number, nullptr});
  estimate = tokens;
  by_estimate_.insert({tokens, request.number, &request});
}

WaitingRequest* PrefixOrder::Next(GroupId group) {
  if (by_tokens_.empty()) return nullptr;
  Last& last = last_[group];
  WaitingRequest* best = nullptr;
  std::uint64_t most = 0;
  const auto consider = [&](WaitingRequest* request) {
    const std::uint64_t tokens = cached_tokens_(group, *request);
    Correct(*request, tokens);
    if (best != nullptr && tokens <= most) return;
    best = request;
    most = tokens;
  };
  if (last.has_left) {
    WaitingRequest place;
    static_cast<Work&>(place) = std::move(last.left);
    const auto after = by_tokens_.lower_bound(&place);
    last.left = std::move(static_cast<Work&>(place));
    if (after != by_tokens_.end()) consider(*after);
    if (after != by_tokens_.begin()) consider(*std::prev(after));
  }
  if (most == 0) best = nullptr;  // neighbours that share nothing have no preference
  for (int look = 0; look < kMaxEstimates; ++look) {
    const Estimate top = *by_estimate_.begin();
    if (top.tokens <= most) break;
    consider(top.request);
  }
  if (most == 0) best = by_number_.begin()->second;
  last.named = best;
  return best;
}

}  // namespace penstock::scheduler
