#include "router/dispatch/prefix_reason.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

namespace penstock::router {
namespace {

using Entry = PromptHistory::Entry;
using Kept = PromptHistory::Kept;
using Kind = PrefixReason::Kind;

constexpr std::size_t kShownTokens = 12;  // on each side of the difference

std::optional<Time> BeginningOf(const RequestRecord& record) {
  const auto admitted =
      std::ranges::find(record.decisions, DecisionKind::kAdmitted, &Decision::kind);
  if (admitted == record.decisions.end()) return std::nullopt;
  return admitted->at;
}

// When a request let go of its blocks. nullopt: it runs.
std::optional<Time> EndOf(const RequestRecord& record) {
  const bool ended =
      record.state == "finished" || record.state == "cancelled" || record.state == "failed";
  if (!ended || record.decisions.empty()) return std::nullopt;
  return record.decisions.back().at;
}

std::string TextOf(const text::Tokenizer& tokenizer, std::span<const TokenId> ids) {
  return tokenizer.Decode(ids, false).value_or("");
}

struct Nearest {
  const Entry* entry = nullptr;
  std::uint32_t common = 0;
};

// The newest of equally near prompts wins.
Nearest NearestOf(std::span<const Kept> earlier, const Entry& own, bool all_tenants) {
  Nearest nearest;
  for (const Kept& entry : earlier) {
    if (!all_tenants && entry->tenant != own.tenant) continue;
    const std::uint32_t common = CommonTokens(own.ids, entry->ids);
    if (common > 0 && common >= nearest.common) nearest = {entry.get(), common};
  }
  return nearest;
}

void ShowDifference(const PrefixSources& sources, const Entry& own, const Nearest& nearest,
                    PrefixReason& reason) {
  const auto around = [&](const Entry& entry) {
    return std::span<const TokenId>(entry.ids).subspan(nearest.common);
  };
  const auto first = [&](std::span<const TokenId> ids) {
    return TextOf(sources.tokenizer, ids.first(std::min(ids.size(), kShownTokens)));
  };
  const auto common = std::span<const TokenId>(own.ids).first(nearest.common);
  reason.before = TextOf(sources.tokenizer, common.last(std::min(common.size(), kShownTokens)));
  reason.here = first(around(own));
  reason.there = first(around(*nearest.entry));
}

// The blocks of the first `tokens` tokens were not found, though earlier prompts had them.
void ShowEviction(const PrefixSources& sources, std::span<const Kept> earlier, const Entry& own,
                  std::uint32_t tokens, Time began, PrefixReason& reason) {
  reason.kind = Kind::kEvicted;
  reason.missed = began;
  for (const Kept& entry : earlier) {
    if (entry->tenant != own.tenant || CommonTokens(own.ids, entry->ids) < tokens) continue;
    const auto record = sources.records.Of(entry->request);
    if (!record) continue;
    const auto end = EndOf(*record);
    if (!end || *end > began) {
      reason.kind = Kind::kHeld;
      return;
    }
    reason.last_cached = std::max(reason.last_cached.value_or(*end), *end);
  }
}

void ShowRelative(const PrefixSources& sources, const Nearest& nearest, PrefixReason& reason) {
  reason.relative = nearest.entry->request;
  reason.relative_tenant = nearest.entry->tenant;
  reason.common_tokens = nearest.common;
  const auto record = sources.records.Of(nearest.entry->request);
  if (record) reason.relative_client_id = record->client_id;
}

}  // namespace

std::optional<PrefixReason> ExplainPrefix(const PrefixSources& sources, const RequestRecord& record,
                                          bool admin) {
  const auto began = BeginningOf(record);
  const std::vector<Kept> prompts = sources.history.UpTo(record.request);
  if (!began || prompts.empty()) return std::nullopt;
  const Entry& own = *prompts.back();
  const auto earlier = std::span(prompts).first(prompts.size() - 1);
  PrefixReason reason;
  reason.kind = Kind::kWhole;
  if (own.computed_whole) return reason;
  // The last token is always computed.
  const auto readable = static_cast<std::uint32_t>(own.ids.size() - 1);
  const std::uint32_t block = sources.block_size;
  reason.kind = Kind::kShort;
  if (readable < block) return reason;
  if (record.cached_tokens >= readable / block * block) return std::nullopt;
  reason.kind = Kind::kNoRelative;
  const Nearest nearest = NearestOf(earlier, own, admin);
  if (nearest.entry == nullptr) return reason;
  ShowRelative(sources, nearest, reason);
  reason.kind = Kind::kDifferent;
  const std::uint32_t present = std::min(nearest.common, readable) / block * block;
  if (nearest.entry->tenant != own.tenant) {
    reason.kind = Kind::kOtherTenant;
  } else if (present > record.cached_tokens) {
    ShowEviction(sources, earlier, own, present, *began, reason);
    return reason;
  }
  ShowDifference(sources, own, nearest, reason);
  return reason;
}

}  // namespace penstock::router
