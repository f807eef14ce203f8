#include "shard/backend/reference/batch_inputs.h"

#include <algorithm>
#include <span>

namespace penstock::shard {
namespace {

at::Tensor ToDevice(std::vector<std::int64_t>& values, at::Device device) {
  const auto size = static_cast<std::int64_t>(values.size());
  return at::from_blob(values.data(), {size}, at::kLong).to(device, at::kLong, false, true);
}

// Rows of this rank's share of the vocabulary, and with several ranks a mask of tokens that it has.
void MakeTokenInputs(std::span<const TokenId> tokens, const Program& program, at::Device device,
                     BatchInputs& inputs) {
  const RankShare& part = program.part;
  std::vector<std::int64_t> rows(inputs.padded_rows, 0);
  std::vector<float> mask(inputs.padded_rows, 0.0f);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int64_t row = std::int64_t{tokens[i]} - part.first_vocabulary;
    const bool mine = row >= 0 && row < part.vocabulary;
    rows[i] = mine ? row : 0;
    mask[i] = mine ? 1.0f : 0.0f;
  }
  inputs.token_rows = ToDevice(rows, device);
  if (part.world > 1) {
    inputs.token_mask = at::from_blob(mask.data(), {inputs.padded_rows, 1}, at::kFloat)
                            .to(device, at::kFloat, false, true);
  }
}

SegmentInputs MakeSegment(const RaggedSegment& segment, const BatchShape& shape,
                          at::Device device) {
  std::vector<std::int64_t> blocks;
  blocks.reserve(segment.blocks.size());
  for (BlockId block : segment.blocks) {
    // Entries that no layer reads may hold anything.
    blocks.push_back(block.value() < shape.blocks ? block.value() : 0);
  }
  SegmentInputs inputs;
  inputs.query_start = segment.query_start;
  inputs.query_count = segment.query_count;
  inputs.context_length = segment.context_length;
  inputs.blocks = ToDevice(blocks, device);
  inputs.row = segment.row;
  inputs.state = segment.state.value();
  inputs.drafts = segment.drafts;
  return inputs;
}

}  // namespace

BatchInputs MakeBatchInputs(const RaggedBatch& batch, const Program& program,
                            const BatchShape& shape, const SlotOf& slot_of, at::Device device) {
  BatchInputs inputs;
  inputs.rows = static_cast<std::int64_t>(batch.tokens.size());
  inputs.padded_rows =
      (inputs.rows + shape.row_multiple - 1) / shape.row_multiple * shape.row_multiple;
  MakeTokenInputs(batch.tokens, program, device, inputs);
  std::vector<std::int64_t> positions(inputs.padded_rows, 0);
  std::vector<std::int64_t> slots(inputs.rows, 0);
  // Candidates write to the spare blocks, which come after those of all sequences.
  std::int64_t spare = std::int64_t{shape.blocks} * shape.block_size;
  std::int64_t drafts = 0;
  for (const RaggedSegment& segment : batch.segments) {
    for (std::uint32_t i = 0; i < segment.query_count; ++i) {
      const std::uint32_t position = segment.context_length + (segment.candidates ? 0 : i);
      positions[segment.query_start + i] = position;
      slots[segment.query_start + i] = segment.candidates ? spare++ : slot_of(segment, position);
    }
    inputs.segments.push_back(MakeSegment(segment, shape, device));
    inputs.segments.back().first_draft = drafts;
    drafts += segment.drafts;
  }
  inputs.positions = ToDevice(positions, device);
  inputs.kv_slots = ToDevice(slots, device);
  for (std::size_t i = 0; i < inputs.segments.size(); ++i) {
    const RaggedSegment& from = batch.segments[i];
    if (!from.candidates) continue;
    SegmentInputs& segment = inputs.segments[i];
    segment.own_slots = inputs.kv_slots.narrow(0, segment.query_start, segment.query_count);
    segment.first_own_slot = slots[from.query_start];
    segment.commit_slot = slot_of(from, from.context_length);
    const auto row =
        std::lower_bound(batch.logit_rows.begin(), batch.logit_rows.end(), from.query_start);
    segment.logit_index = row - batch.logit_rows.begin();
  }
  std::vector<std::int64_t> logit_rows(batch.logit_rows.begin(), batch.logit_rows.end());
  inputs.logit_rows = ToDevice(logit_rows, device);
  return inputs;
}

}  // namespace penstock::shard
