#include "shard/executor/slot_table.h"

#include <algorithm>
#include <utility>

namespace penstock::shard {
namespace {

bool Contains(std::span<const TokenId> tokens, TokenId token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

bool EndsWith(std::span<const TokenId> tokens, std::span<const TokenId> end) {
  return end.size() <= tokens.size() && std::ranges::equal(tokens.last(end.size()), end);
}

ShardFinish FinishAfter(const RankSequence& sequence, TokenId token, std::span<const TokenId> eos) {
  const SequenceStart& start = sequence.start;
  const std::uint32_t generated = sequence.Generated();
  if (start.max_new_tokens > 0 && generated >= start.max_new_tokens) return ShardFinish::kLength;
  // A grammar allows EOS only where the output is complete.
  if (!start.grammar.empty() && Contains(eos, token)) return ShardFinish::kEos;
  if (generated <= start.min_new_tokens) return ShardFinish::kNone;
  if (!start.ignore_eos && Contains(eos, token)) return ShardFinish::kEos;
  if (Contains(start.stop_token_ids, token)) return ShardFinish::kStopToken;
  return ShardFinish::kNone;
}

RankSequence MakeSequence(const SequenceStart& start, std::uint32_t kv_groups) {
  RankSequence sequence;
  sequence.start = start;
  sequence.tokens = std::move(sequence.start.prompt);
  sequence.start.prompt.clear();
  sequence.committed = start.cached_length;
  sequence.tables.resize(kv_groups);
  return sequence;
}

}  // namespace

SlotTable::SlotTable(std::uint32_t slots, std::uint32_t kv_groups)
    : kv_groups_(kv_groups), slots_(slots) {}

void SlotTable::Apply(const StepPlan& plan) {
  for (SlotId slot : plan.ends) slots_[slot.value()].reset();
  for (const SequenceStart& start : plan.starts) {
    slots_[start.slot.value()] = MakeSequence(start, kv_groups_);
  }
  for (const BlockOp& op : plan.block_ops) {
    if (op.kind == BlockOp::Kind::kAppend) at(op.slot).tables[op.kv_group].push_back(op.dst);
  }
}

void SlotTable::Reset() { std::fill(slots_.begin(), slots_.end(), std::nullopt); }

void CollectMasked(const RankSequence& sequence, std::span<const TokenId> eos,
                   std::vector<TokenId>& out) {
  out.clear();
  for (const std::vector<TokenId>& word : sequence.start.sampling.bad_words) {
    if (EndsWith(sequence.tokens, std::span(word).first(word.size() - 1))) {
      out.push_back(word.back());
    }
  }
  if (sequence.Generated() + sequence.tokens_in_flight >= sequence.start.min_new_tokens) return;
  if (!sequence.start.ignore_eos) out.insert(out.end(), eos.begin(), eos.end());
  out.insert(out.end(), sequence.start.stop_token_ids.begin(), sequence.start.stop_token_ids.end());
}

void AcceptToken(RankSequence& sequence, TokenId token, std::span<const TokenId> eos) {
  sequence.tokens.push_back(token);
  sequence.finish = FinishAfter(sequence, token, eos);
}

}  // namespace penstock::shard
