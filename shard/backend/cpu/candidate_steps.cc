// The part of StepRunner that serves contrastive search: where candidates keep what is theirs, the
// hidden-state plane, and the commit of the chosen one.
#include <algorithm>

#include "shard/backend/cpu/step_runner.h"
#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {

// A candidate's cell is a whole pair of positions where positions are paired (CellKernels::pack),
// so that the pair looks as it will in the sequence's own block.
void StepRunner::PlaceCandidates(const RaggedSegment& segment, std::uint32_t& candidate_rows) {
  const auto pack = static_cast<std::uint32_t>(parts_.cell_kernels.pack);
  const std::uint32_t size = parts_.block_size;
  const std::uint32_t position = segment.context_length;
  const std::uint32_t within = position % pack;
  CachePlace before;
  if (within > 0) {
    before = {segment.blocks[(position - 1) / size].value(), (position - 1) % size};
  }
  candidates_.push_back({static_cast<std::uint32_t>(table_starts_.size() - 1), segment.query_start,
                         segment.query_count, selected_[segment.query_start], position});
  for (std::uint32_t i = 0; i < segment.query_count; ++i) {
    const std::uint32_t cell = candidate_rows++ * pack + within;
    places_.push_back({position, true, within > 0, before});
    cells_.push_back({parts_.cache.blocks() + cell / size, cell % size});
  }
}

// As SelectNorm, and the hidden state of every row goes to the plane. A candidate's is kept as a
// row as well, and its logits wait for the choice.
void StepRunner::NormAll(const Stage& stage, std::size_t thread) {
  const BufferView& selected = parts_.buffers.View(stage.out);
  const BufferView& units = parts_.buffers.View(Buffer::kNormed);
  const HeadCache plane = parts_.cache.Hidden();
  float* const state = parts_.buffers.Thread(thread).row;
  const Share share = EvenShare(rows_, threads(), thread);
  const Kernels& kernels = parts_.kernels;
  const bool layer = stage.norm_kind == NormKind::kLayer;
  const auto to_floats = layer ? kernels.wide_layer_norm : kernels.head_norm;
  const auto to_activations = layer ? kernels.layer_norm : kernels.norm;
  NormArgs norm;
  norm.weight = stage.norm_weight;
  norm.bias = stage.norm_bias;
  norm.size = parts_.program.Width(stage.in);
  norm.eps = stage.eps;
  auto next = std::find_if(candidates_.begin(), candidates_.end(), [&share](const auto& segment) {
    return segment.first_row + segment.rows > share.first;
  });
  for (std::size_t row = share.first; row < share.first + share.count; ++row) {
    norm.input = parts_.buffers.View(stage.in).Floats(row);
    norm.add = stage.add == Buffer::kNone ? nullptr : parts_.buffers.View(stage.add).Floats(row);
    norm.out = state;
    to_floats(norm);
    while (next != candidates_.end() && row >= next->first_row + next->rows) ++next;
    const bool candidate = next != candidates_.end() && row >= next->first_row;
    if (!candidate && selected_[row] != kNotSelected) {
      norm.add = nullptr;  // it has joined
      norm.out = selected.Row(selected_[row]);
      to_activations(norm);
    }
    parts_.kernels.unit_vector(state, norm.size, candidate ? units.Row(row) : nullptr);
    parts_.kernels.write_key(plane, cells_[row], state);
  }
}

// The largest of all is the same in whatever order they are compared.
void StepRunner::Similarities(const CandidateSegment& segment, std::span<float> out) {
  const BufferView& units = parts_.buffers.View(Buffer::kNormed);
  largest_.assign(threads() * segment.rows, -__builtin_huge_valf());
  const std::size_t size = parts_.block_size;
  SimilarityArgs whole;
  whole.plane = parts_.cache.Hidden();
  whole.blocks = tables_.data() + table_starts_[segment.segment];
  whole.rows = units.Row(segment.first_row);
  whole.stride = units.stride;
  whole.count = segment.rows;
  parts_.pool.Run([&](std::uint32_t thread) {
    SimilarityArgs args = whole;
    const Share share = EvenShare((segment.context + size - 1) / size, threads(), thread);
    args.first = share.first * size;
    args.end = std::min<std::size_t>((share.first + share.count) * size, segment.context);
    args.scratch = parts_.buffers.Thread(thread).attention.scores;
    args.largest = largest_.data() + thread * segment.rows;
    if (args.first < args.end) parts_.kernels.similarity(args);
  });
  for (std::size_t row = 0; row < segment.rows; ++row) {
    out[row] = largest_[row];
    for (std::size_t thread = 1; thread < threads(); ++thread) {
      out[row] = std::max(out[row], largest_[thread * segment.rows + row]);
    }
  }
}

void StepRunner::Commit(const CandidateSegment& segment, std::uint32_t row) {
  const std::size_t chosen = segment.first_row + row;
  const std::uint32_t* table = tables_.data() + table_starts_[segment.segment];
  const CachePlace from = cells_[chosen];
  const CachePlace to{table[segment.context / parts_.block_size],
                      segment.context % parts_.block_size};
  for (std::size_t layer = 0; layer < parts_.program.layers; ++layer) {
    for (std::size_t head = 0; head < parts_.program.part.kv_heads; ++head) {
      parts_.cell_kernels.copy_kv(parts_.cache.Head(layer, head), from, to);
    }
  }
  parts_.kernels.copy_key(parts_.cache.Hidden(), from, to);
  Stage final_norm = stages_.body.back();
  final_norm.add = Buffer::kNone;  // it has joined
  NormRow(final_norm, chosen, parts_.buffers.View(final_norm.out).Row(segment.selected));
}

}  // namespace penstock::shard::cpu
