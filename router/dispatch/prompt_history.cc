#include "router/dispatch/prompt_history.h"

#include <algorithm>
#include <utility>

namespace penstock::router {

void PromptHistory::Add(RequestId request, const std::string& tenant, std::span<const TokenId> ids,
                        bool computed_whole) {
  if (max_prompts_ == 0 || ids.size() > max_tokens_) return;
  auto entry = std::make_shared<const Entry>(
      Entry{request, tenant, {ids.begin(), ids.end()}, computed_whole});
  const std::lock_guard lock(mutex_);
  tokens_ += ids.size();
  entries_.push_back(std::move(entry));
  while (entries_.size() > max_prompts_ || tokens_ > max_tokens_) {
    tokens_ -= entries_.front()->ids.size();
    entries_.pop_front();
  }
}

std::vector<PromptHistory::Kept> PromptHistory::UpTo(RequestId request) const {
  const std::lock_guard lock(mutex_);
  const auto own =
      std::ranges::find(entries_, request, [](const Kept& entry) { return entry->request; });
  if (own == entries_.end()) return {};
  return {entries_.begin(), own + 1};
}

std::uint32_t CommonTokens(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace penstock::router
