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

SegmentInputs MakeSegment(const RaggedSegment& segment, const RaggedBatch& batch) {
  SegmentInputs inputs;
  inputs.query_start = segment.query_start;
  inputs.query_count = segment.query_count;
  inputs.context_length = segment.context_length;
  inputs.row = segment.row;
  inputs.state = segment.state.value();
  inputs.drafts = segment.drafts;
  if (!segment.candidates) return inputs;
  const auto row =
      std::lower_bound(batch.logit_rows.begin(), batch.logit_rows.end(), segment.query_start);
  inputs.logit_index = row - batch.logit_rows.begin();
  return inputs;
}

// The parts of the inputs that differ by KV group.
void FillGroup(const RaggedBatch& batch, std::uint32_t group, const BatchShape& shape,
               const SlotOf& slot_of, at::Device device, BatchInputs& inputs) {
  std::vector<std::int64_t> slots(batch.tokens.size(), 0);
  // Candidates write to the spare blocks, which come after those of all sequences.
  std::int64_t spare = std::int64_t{shape.blocks[group]} * shape.block_size;
  for (const RaggedSegment& segment : batch.segments) {
    for (std::uint32_t i = 0; i < segment.query_count; ++i) {
      slots[segment.query_start + i] =
          segment.candidates ? spare++ : slot_of(segment, group, segment.context_length + i);
    }
  }
  inputs.kv_slots[group] = ToDevice(slots, device);
  for (std::size_t i = 0; i < inputs.segments.size(); ++i) {
    const RaggedSegment& from = batch.segments[i];
    GroupInputs& to = inputs.segments[i].groups[group];
    std::vector<std::int64_t> blocks;
    for (const BlockId block : from.Table(group)) {
      // Entries that no layer reads may hold anything.
      blocks.push_back(block.value() < shape.blocks[group] ? block.value() : 0);
    }
    to.blocks = ToDevice(blocks, device);
    if (!from.candidates) continue;
    to.own_slots = inputs.kv_slots[group].narrow(0, from.query_start, from.query_count);
    to.first_own_slot = slots[from.query_start];
    to.commit_slot = slot_of(from, group, from.context_length);
  }
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
  std::int64_t drafts = 0;
  for (const RaggedSegment& segment : batch.segments) {
    for (std::uint32_t i = 0; i < segment.query_count; ++i) {
      positions[segment.query_start + i] = segment.context_length + (segment.candidates ? 0 : i);
    }
    inputs.segments.push_back(MakeSegment(segment, batch));
    inputs.segments.back().first_draft = drafts;
    drafts += segment.drafts;
  }
  inputs.positions = ToDevice(positions, device);
  for (std::uint32_t group = 0; group < program.KvGroups(); ++group) {
    FillGroup(batch, group, shape, slot_of, device, inputs);
  }
  std::vector<std::int64_t> logit_rows(batch.logit_rows.begin(), batch.logit_rows.end());
  inputs.logit_rows = ToDevice(logit_rows, device);
  return inputs;
}

}  // namespace penstock::shard
