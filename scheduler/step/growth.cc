#include "scheduler/step/growth.h"

#include <algorithm>
#include <tuple>

#include "scheduler/admission/admission_policy.h"
#include "scheduler/kv/block_table.h"

namespace penstock::scheduler {
namespace {

std::uint64_t Above(std::uint64_t value, std::uint64_t limit) {
  return value > limit ? value - limit : 0;
}

}  // namespace

Lack Growth::Beyond(const Sequence& sequence, std::uint64_t positions, std::uint64_t tokens) const {
  const std::uint64_t held = sequence.blocks.blocks().size() + sequence.blocks.reserved();
  Lack lack;
  // Without a division where nothing lacks: this runs twice for every row of a step.
  const bool enough = in_cells_ || positions <= held * block_size_;
  lack.blocks = enough ? 0 : BlocksFor(positions, block_size_) - held;
  lack.tokens = Above(tokens, sequence.reserved_tokens);
  return lack;
}

Lack Growth::OfNextDecode(const Sequence& sequence, std::uint32_t max_rows) const {
  const std::uint32_t rows = sequence.NextDecodeRows(max_rows);
  if (rows == 0) return {};
  const std::uint64_t positions = sequence.PositionsAfter(sequence.TokensOfDecode(rows));
  return Beyond(sequence, positions, positions + sequence.Unwritten());
}

std::uint64_t Growth::OfPipeline(const Sequence& sequence) const {
  if (sequence.retiring) return 0;
  const std::uint64_t positions = sequence.PositionsAfter(
      std::uint64_t{config_.pipeline_depth} * sequence.TokensOfDecode(config_.max_decode_rows));
  const std::uint64_t worst = AdmissionPolicy::WorstCaseTokens(sequence.request);
  return Beyond(sequence, std::min(positions, worst), 0).blocks;
}

Lack Growth::Stretch(const Sequence& sequence, const Lack& lack,
                     std::uint64_t expected_tokens) const {
  const Lack expected = Beyond(sequence, expected_tokens, expected_tokens);
  return {std::max(expected.blocks, lack.blocks), std::max(expected.tokens, lack.tokens)};
}

bool Growth::Covered(const Lack& lack, const SequenceTable& table, bool later) const {
  const BlockPool& pool = table.pool();
  const std::uint64_t blocks = std::uint64_t{pool.available()} + (later ? pool.retiring() : 0);
  if (lack.blocks > blocks) return false;
  const std::uint64_t limit = config_.max_batch_total_tokens;
  return limit == 0 || lack.tokens == 0 || table.reserved_tokens() + lack.tokens <= limit;
}

Sequence* Growth::Victim(SequenceTable& table, const AdmissionPolicy& admission) const {
  const auto rank = [this](const Sequence& sequence) {
    const std::int64_t priority = config_.order == Order::kPriority ? sequence.request.priority : 0;
    return std::make_tuple(-priority, sequence.number);
  };
  Sequence* victim = nullptr;
  for (auto& [id, sequence] : table.all()) {
    if (sequence.retiring || !admission.MayBePreempted(sequence)) continue;
    if (victim == nullptr || rank(sequence) > rank(*victim)) victim = &sequence;
  }
  return victim;
}

}  // namespace penstock::scheduler
