#include "shard/backend/reference/batch_inputs.h"

#include <algorithm>
#include <span>
#include <string>

#include "common/status.h"

namespace penstock::shard {
namespace {

at::Tensor ToDevice(std::vector<std::int64_t>& values, at::Device device) {
  const auto size = static_cast<std::int64_t>(values.size());
  return at::from_blob(values.data(), {size}, at::kLong).to(device, at::kLong, false, true);
}

// Positions that a query sees in the layer with the widest window; 0 = all.
std::uint32_t WidestWindow(const Program& program) {
  std::uint32_t widest = 0;
  for (const Op& op : program.body) {
    if (op.kind != OpKind::kAttention) continue;
    if (op.window == 0) return 0;
    widest = std::max(widest, op.window);
  }
  return widest;
}

absl::Status CheckSegment(const RaggedSegment& segment, std::uint32_t expected_start,
                          const BackendLimits& limits, std::uint32_t window,
                          const BatchShape& shape) {
  if (segment.query_start != expected_start || segment.query_count == 0) {
    return BadValue("segment.query_start", std::to_string(segment.query_start),
                    "where the segment before it ends, " + std::to_string(expected_start));
  }
  const std::uint64_t end = std::uint64_t{segment.context_length} + segment.query_count;
  if (end > limits.max_sequence_length) {
    return BadValue("segment length", std::to_string(end),
                    "at most " + std::to_string(limits.max_sequence_length));
  }
  const std::uint64_t needed = (end + shape.block_size - 1) / shape.block_size;
  if (segment.blocks.size() < needed) {
    return BadValue("segment.blocks", std::to_string(segment.blocks.size()) + " entries",
                    "at least " + std::to_string(needed));
  }
  const bool all = window == 0 || segment.context_length < window;
  const std::uint64_t first_visible = all ? 0 : segment.context_length - window + 1;
  for (std::uint64_t i = first_visible / shape.block_size; i < needed; ++i) {
    if (segment.blocks[i].value() >= shape.blocks) {
      return BadValue("segment.blocks[" + std::to_string(i) + "]",
                      std::to_string(segment.blocks[i].value()),
                      "below the cache's " + std::to_string(shape.blocks));
    }
  }
  return absl::OkStatus();
}

// Tokens of this rank's share of the vocabulary, and a mask where the shares differ.
void MakeTokenInputs(std::span<const TokenId> tokens, const Program& program, at::Device device,
                     BatchInputs& inputs) {
  const Partition& part = program.part;
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
  return {segment.query_start, segment.query_count, segment.context_length,
          ToDevice(blocks, device)};
}

}  // namespace

absl::Status CheckBatch(const RaggedBatch& batch, const BackendLimits& limits,
                        const Program& program, const BatchShape& shape) {
  if (batch.tokens.empty() || batch.tokens.size() > limits.max_step_tokens) {
    return BadValue("tokens", std::to_string(batch.tokens.size()) + " rows",
                    "1 to " + std::to_string(limits.max_step_tokens));
  }
  for (TokenId token : batch.tokens) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= program.vocabulary) {
      return BadValue("token id", std::to_string(token),
                      "from 0 to " + std::to_string(program.vocabulary - 1));
    }
  }
  const std::uint32_t window = WidestWindow(program);
  std::uint32_t rows = 0;
  for (const RaggedSegment& segment : batch.segments) {
    PENSTOCK_RETURN_IF_ERROR(CheckSegment(segment, rows, limits, window, shape));
    rows += segment.query_count;
  }
  if (rows != batch.tokens.size()) {
    return BadValue("segments", std::to_string(rows) + " rows in all",
                    "as many as tokens, " + std::to_string(batch.tokens.size()));
  }
  std::int64_t before = -1;
  for (std::uint32_t row : batch.logit_rows) {
    if (row <= before || row >= rows) {
      return BadValue("logit_rows", std::to_string(row), "ascending and below the number of rows");
    }
    before = row;
  }
  return absl::OkStatus();
}

BatchInputs MakeBatchInputs(const RaggedBatch& batch, const Program& program,
                            const BatchShape& shape, at::Device device) {
  BatchInputs inputs;
  inputs.rows = static_cast<std::int64_t>(batch.tokens.size());
  inputs.padded_rows =
      (inputs.rows + shape.row_multiple - 1) / shape.row_multiple * shape.row_multiple;
  MakeTokenInputs(batch.tokens, program, device, inputs);
  std::vector<std::int64_t> positions(inputs.padded_rows, 0);
  std::vector<std::int64_t> slots(inputs.rows, 0);
  for (const RaggedSegment& segment : batch.segments) {
    for (std::uint32_t i = 0; i < segment.query_count; ++i) {
      const std::uint32_t position = segment.context_length + i;
      const std::uint64_t block = segment.blocks[position / shape.block_size].value();
      positions[segment.query_start + i] = position;
      slots[segment.query_start + i] =
          static_cast<std::int64_t>(block * shape.block_size + position % shape.block_size);
    }
    inputs.segments.push_back(MakeSegment(segment, shape, device));
  }
  inputs.positions = ToDevice(positions, device);
  inputs.kv_slots = ToDevice(slots, device);
  std::vector<std::int64_t> logit_rows(batch.logit_rows.begin(), batch.logit_rows.end());
  inputs.logit_rows = ToDevice(logit_rows, device);
  return inputs;
}

}  // namespace penstock::shard
