#include "router/dispatch/cached_prompts.h"

#include <algorithm>

namespace penstock::router {
namespace {

constexpr std::size_t kShownBytes = 80;

// Whole characters; what is cut ends with an ellipsis.
std::string Beginning(const std::string& text) {
  std::size_t end = std::min(text.size(), kShownBytes);
  while (end > 0 && end < text.size() && (text[end] & 0xc0) == 0x80) --end;
  return end < text.size() ? text.substr(0, end) + "..." : text;
}

}  // namespace

void CachedPromptList::Take(const scheduler::PinChange& change, const Owner& owner, Time now) {
  const std::lock_guard lock(mutex_);
  if (change.kind == scheduler::PinChange::Kind::kDropped) {
    prompts_.erase(change.made_by);
    return;
  }
  const bool kept = change.kind == scheduler::PinChange::Kind::kKept;
  if (kept && owner.text.empty()) return;  // held for a while, for no client to see
  if (!kept && !prompts_.contains(change.made_by)) return;  // forgotten meanwhile
  CachedPrompt& prompt = prompts_[change.made_by];
  if (kept) {
    prompt.id = change.made_by.value();
    prompt.tenant = owner.tenant;
    prompt.text = Beginning(owner.text);
    prompt.group = change.group;
    prompt.tokens = change.tokens;
    prompt.blocks = change.blocks;
  }
  ++prompt.uses;
  prompt.last_used = now;
}

std::vector<CachedPrompt> CachedPromptList::List(const std::string& tenant) const {
  std::vector<CachedPrompt> list;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, prompt] : prompts_) {
      if (prompt.tenant == tenant) list.push_back(prompt);
    }
  }
  std::ranges::stable_sort(list, std::greater{}, &CachedPrompt::last_used);
  return list;
}

std::size_t CachedPromptList::Forget(const std::string& tenant, std::optional<std::uint64_t> id) {
  const std::lock_guard lock(mutex_);
  return std::erase_if(prompts_, [&](const auto& entry) {
    return entry.second.tenant == tenant && (!id || entry.second.id == *id);
  });
}

}  // namespace penstock::router
