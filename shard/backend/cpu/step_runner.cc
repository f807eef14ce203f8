#include "shard/backend/cpu/step_runner.h"

#include <algorithm>
#include <cmath>

#include "shard/backend/cpu/attention/attention_stage.h"
#include "shard/backend/cpu/delta/gates.h"
#include "shard/backend/cpu/latent/head_linear.h"
#include "shard/backend/cpu/latent/latent_row.h"
#include "shard/backend/cpu/row_stages.h"
#include "shard/backend/cpu/threads/work_split.h"
#include "shard/backend/row_angles.h"
#include "shard/weights/convert.h"

namespace penstock::shard::cpu {

namespace {

float GrowthOf(const QueryGrowth& growth, std::uint32_t position) {
  if (growth.rate == 0.0f) return 1.0f;
  const std::uint32_t steps = (position + growth.first) / growth.period;
  return std::log1p(static_cast<float>(steps)) * growth.rate + 1.0f;
}

}  // namespace

StepRunner::StepRunner(const StepParts& parts)
    : parts_(parts),
      stages_(BuildStages(parts.program, parts.weights)),
      linear_(parts.kernels, parts.buffers, parts.pool),
      places_(parts.cache, parts.cell_kernels.pack, parts.block_size) {
  std::vector<const AttentionOp*> planned;
  for (const Stage& stage : stages_.body) {
    if (stage.experts != nullptr) {
      experts_.try_emplace(stage.experts, *stage.experts, parts.program, parts.kernels,
                           parts.weights, parts.expert_buffers, parts.buffers, parts.pool);
    }
    if (stage.delta != nullptr) {
      deltas_.try_emplace(stage.delta, *stage.delta, parts.kernels, parts.weights, parts.states,
                          parts.buffers, parts.pool);
    }
    if (stage.short_conv != nullptr) {
      short_convs_.try_emplace(stage.short_conv, *stage.short_conv, parts.kernels, parts.weights,
                               parts.states, parts.buffers, parts.pool);
    }
    plan_of_stage_.push_back(0);
    if (stage.kind != StageKind::kAttention) continue;
    const auto known = std::find_if(planned.begin(), planned.end(), [&](const AttentionOp* other) {
      return other->window == stage.attention->window && other->chunk == stage.attention->chunk &&
             other->heads == stage.attention->heads &&
             other->both_ways == stage.attention->both_ways;
    });
    plan_of_stage_.back() = static_cast<std::size_t>(known - planned.begin());
    if (known == planned.end()) planned.push_back(stage.attention);
  }
  plans_.resize(planned.size());
}

absl::Status StepRunner::Execute(const RaggedBatch& batch) {
  batch_ = &batch;
  rows_ = batch.tokens.size();
  status_ = absl::OkStatus();
  places_.Fill(batch);
  adapted_.Fill(batch);
  PlanAttention(batch);
  for (std::size_t i = 0; i < parts_.ropes.size(); ++i) {
    const RopeSpec& rope = parts_.program.ropes[i];
    if (rope.DependsOnLength()) SetRowAngles(rope, batch, parts_.ropes[i]);
  }
  parts_.pool.Run([this](std::uint32_t thread) {
    for (const Stage& stage : stages_.body) {
      RunStage(stage, thread);
      if (stage.kind == StageKind::kNorm && IsPrivate(stage)) continue;
      parts_.pool.Barrier();
      if (stage.kind == StageKind::kAllReduce && !status_.ok()) return;
    }
  });
  return status_;
}

void StepRunner::PlanAttention(const RaggedBatch& batch) {
  std::vector<bool> built(plans_.size(), false);
  for (std::size_t i = 0; i < stages_.body.size(); ++i) {
    const Stage& stage = stages_.body[i];
    if (stage.kind != StageKind::kAttention || built[plan_of_stage_[i]]) continue;
    built[plan_of_stage_[i]] = true;
    const PlanHeads heads = HeadsOfPlan(parts_.program, *stage.attention);
    const AttentionOp& op = *stage.attention;
    const AttentionShape shape{
        heads.kv_heads, heads.group,           op.window, op.chunk, op.both_ways,
        threads(),      parts_.buffers.slots()};
    plans_[plan_of_stage_[i]].Build(shape, batch.segments);
  }
}

void StepRunner::RunStage(const Stage& stage, std::size_t thread) {
  switch (stage.kind) {
    case StageKind::kEmbed:
    case StageKind::kPositions:
    case StageKind::kGroupNorm:
    case StageKind::kMultiply:
    case StageKind::kScale:
    case StageKind::kSquares:
    case StageKind::kWidthNorm:
    case StageKind::kClamp:
    case StageKind::kXielu:
      return RunRows(stage, thread);
    case StageKind::kNorm:
      return Norm(stage, thread);
    case StageKind::kSelectNorm:
      return SelectNorm(stage, thread);
    case StageKind::kLinear:
      return linear_.Run(stage, GemmOf(stage, thread), AdaptersOf(stage), thread);
    case StageKind::kHeads:
      return Heads(stage, thread);
    case StageKind::kAttention:
      return Attention(stage, thread);
    case StageKind::kExperts:
      return experts_.at(stage.experts).Run(rows_, thread);
    case StageKind::kGateRows:
      return GateRows(*stage.gate_rows, parts_.program, parts_.kernels, parts_.buffers,
                      EvenShare(rows_, threads(), thread));
    case StageKind::kLatentWrite:
      return WriteLatents(stage, thread);
    case StageKind::kHeadLinear:
      return HeadLinear(*stage.head_linear, parts_.kernels, parts_.weights, parts_.buffers)
          .Run(rows_, threads(), thread);
    case StageKind::kGate:
      return Gate(*stage.gate, parts_.kernels, parts_.buffers, EvenShare(rows_, threads(), thread));
    case StageKind::kDeltaNet:
      return deltas_.at(stage.delta).Run(rows_, thread);
    case StageKind::kShortConv:
      return short_convs_.at(stage.short_conv).Run(rows_, thread);
    case StageKind::kAllReduce:
      if (thread == 0) AllReduce(stage);
      return;
  }
}

void StepRunner::NormRow(const Stage& stage, std::size_t row, void* out) {
  NormArgs args;
  args.input = parts_.buffers.View(stage.in).Floats(row);
  if (stage.add != Buffer::kNone) args.add = parts_.buffers.View(stage.add).Floats(row);
  args.add_scale = stage.add_scale;
  args.weight = stage.norm_weight;
  args.bias = stage.norm_bias;
  args.size = parts_.program.Width(stage.in);
  args.eps = stage.eps;
  args.out = out;
  NormFunction(stage.norm_kind, !HoldsActivations(stage.out))(args);
}

StepRunner::NormKernel StepRunner::NormFunction(NormKind kind, bool wide) const {
  const Kernels& kernels = parts_.kernels;
  switch (kind) {
    case NormKind::kRms:
      return wide ? kernels.head_norm : kernels.norm;
    case NormKind::kLayer:
      return wide ? kernels.wide_layer_norm : kernels.layer_norm;
    case NormKind::kCopy:
      return wide ? kernels.wide_copy : kernels.copy;
  }
  return nullptr;
}

void StepRunner::Norm(const Stage& stage, std::size_t thread) {
  if (IsPrivate(stage)) {
    const BufferView& out = parts_.buffers.Thread(thread).normed;
    for (std::size_t row = 0; row < rows_; ++row) NormRow(stage, row, out.Row(row));
    return;
  }
  const BufferView& out = parts_.buffers.View(stage.out);
  const Share share = EvenShare(rows_, threads(), thread);
  for (std::size_t row = share.first; row < share.first + share.count; ++row) {
    NormRow(stage, row, out.Row(row));
  }
}

void StepRunner::SelectNorm(const Stage& stage, std::size_t thread) {
  if (parts_.cache.has_hidden()) return NormAll(stage, thread);
  const BufferView& out = parts_.buffers.View(stage.out);
  const Share share = EvenShare(batch_->logit_rows.size(), threads(), thread);
  for (std::size_t i = share.first; i < share.first + share.count; ++i) {
    NormRow(stage, batch_->logit_rows[i], out.Row(i));
  }
}

GemmArgs StepRunner::GemmOf(const Stage& stage, std::size_t thread) const {
  const BufferView& in =
      IsPrivate(stage) ? parts_.buffers.Thread(thread).normed : parts_.buffers.View(stage.in);
  const BufferView& out = parts_.buffers.View(stage.out);
  GemmArgs args;
  args.input = in.data;
  args.input_stride = in.stride;
  args.rows = rows_;
  args.out = out.data;
  args.out_stride = out.stride;
  args.out_columns = stage.matrix->outputs();
  return args;
}

void StepRunner::Logits(std::size_t first, std::size_t count, float* out, std::size_t stride,
                        std::size_t columns) {
  if (parts_.program.head.empty()) return CopySelected(first, count, out, stride, columns);
  const BufferView& in = parts_.buffers.View(stages_.head.in);
  GemmArgs args;
  args.input = in.Row(first);
  args.input_stride = in.stride;
  args.rows = count;
  args.out = out;
  args.out_stride = stride;
  args.out_columns = columns;
  const ScaleLogitsOp& scale = stages_.logits;
  const bool scaled = scale.scale != 1.0f || scale.softcap != 0.0f;
  RowAdapters adapters;
  if (adapted_.Change(stages_.head.weight)) adapters = adapted_.Selected(first, count);
  parts_.pool.Run([&](std::uint32_t thread) {
    linear_.Run(stages_.head, args, adapters, thread);
    if (!scaled) return;
    parts_.pool.Barrier();
    const Share share = EvenShare(columns, threads(), thread);
    for (std::size_t row = 0; row < count; ++row) {
      parts_.kernels.scale_logits(out + row * stride + share.first, share.count, scale.scale,
                                  scale.softcap);
    }
  });
}

void StepRunner::CopySelected(std::size_t first, std::size_t count, float* out, std::size_t stride,
                              std::size_t columns) const {
  const BufferView& in = parts_.buffers.View(Buffer::kSelected);
  for (std::size_t row = 0; row < count; ++row) {
    ConvertElements(in.Row(first + row), parts_.kernels.activation, out + row * stride,
                    DType::kFloat32, columns);
  }
}

std::size_t StepRunner::AnglesOf(std::int32_t rope, std::size_t row) const {
  const RopeSpec& spec = parts_.program.ropes[static_cast<std::size_t>(rope)];
  return (spec.DependsOnLength() ? row : places_.Row(row).position) * std::size_t{spec.dim / 2};
}

void StepRunner::Heads(const Stage& stage, std::size_t thread) {
  const std::size_t kv_heads = stage.heads->heads.kv_heads;
  const Share share = EvenShare(rows_ * kv_heads, threads(), thread);
  for (std::size_t i = share.first; i < share.first + share.count; ++i) {
    HeadsOf(stage, i / kv_heads, i % kv_heads);
  }
}

void StepRunner::NormHead(const HeadNormOp& op, const float* weights, const float* biases,
                          std::size_t index, float* head) const {
  if (weights == nullptr && !op.plain) return;
  const std::size_t dim = op.heads.key_dim, first = op.by_head ? index * dim : 0;
  NormArgs args{.input = head, .size = dim, .eps = op.eps, .out = head};
  if (weights != nullptr) args.weight = weights + first;
  if (biases != nullptr) args.bias = biases + first;
  NormFunction(op.kind, true)(args);
}

// One K/V head of a row and the query heads that use it.
void StepRunner::HeadsOf(const Stage& stage, std::size_t row, std::size_t kv_head) {
  const RopeKvWriteOp& op = *stage.heads;
  const HeadShape& shape = op.heads;
  float* const queries = parts_.buffers.View(stage.in).Floats(row);
  std::size_t half = 0;
  const float* cosine = nullptr;
  const float* sine = nullptr;
  if (op.rope != kNoRope) {
    const auto rope = static_cast<std::size_t>(op.rope);
    half = parts_.program.ropes[rope].dim / 2;
    const std::size_t angles = AnglesOf(op.rope, row);
    cosine = parts_.ropes[rope].cos.data() + angles;
    sine = parts_.ropes[rope].sin.data() + angles;
  }
  const HeadNormOp* const norm = stage.head_norm;
  const float growth = GrowthOf(op.growth, places_.Row(row).position);
  for (std::size_t i = 0; i < shape.Group(); ++i) {
    const std::size_t index = kv_head * shape.Group() + i;
    float* const head = queries + index * shape.key_dim;
    if (norm != nullptr) NormHead(*norm, stage.query_weight, stage.query_bias, index, head);
    parts_.kernels.rope(head, cosine, sine, half);
    if (growth == 1.0f) continue;
    for (std::size_t d = 0; d < shape.key_dim; ++d) head[d] *= growth;
  }
  if (!op.keys) return;
  float* const keys = queries + shape.QueryWidth();
  float* const key = keys + kv_head * shape.key_dim;
  if (norm != nullptr) NormHead(*norm, stage.key_weight, stage.key_bias, kv_head, key);
  parts_.kernels.rope(key, cosine, sine, half);
  if (!op.writes) return;
  float* const value = keys + shape.KeyWidth() + kv_head * shape.value_dim;
  if (norm != nullptr && norm->values) {
    parts_.kernels.head_norm(
        {.input = value, .size = shape.value_dim, .eps = norm->eps, .out = value});
  }
  WriteKv(op, row, kv_head);
}

void StepRunner::WriteKv(const RopeKvWriteOp& op, std::size_t row, std::size_t kv_head) {
  const RowPlace& place = places_.Row(row);
  const GroupPlaces& places = places_.Of(parts_.cache.GroupOf(op.cache));
  const CachePlace& cell = places.Cell(row);
  const float* const keys = parts_.buffers.View(op.qkv).Floats(row) + op.heads.QueryWidth();
  const float* const key = keys + kv_head * op.heads.key_dim;
  const float* const value = keys + op.heads.KeyWidth() + kv_head * op.heads.value_dim;
  const HeadCache cache = parts_.cache.Head(op.cache, kv_head);
  if (place.paired) {
    parts_.cell_kernels.copy_kv(cache, places.Before(row), {cell.block, cell.offset - 1});
  }
  parts_.cell_kernels.write_kv(cache, cell.block, cell.offset, key, value, place.last);
}

void StepRunner::Attention(const Stage& stage, std::size_t thread) {
  const auto index = static_cast<std::size_t>(&stage - stages_.body.data());
  const GroupPlaces& places = places_.Of(parts_.cache.GroupOf(stage.attention->cache));
  AttentionStage({parts_.kernels, KernelsOf(stage.attention->cache), parts_.cache, parts_.buffers,
                  parts_.pool, plans_[plan_of_stage_[index]], places.Tables(), places.TableStarts(),
                  places.Cells(), parts_.buffers.View(stage.in), parts_.buffers.View(stage.out),
                  *stage.attention, stage.sinks})
      .Run(thread);
}

void StepRunner::WriteLatents(const Stage& stage, std::size_t thread) {
  const LatentWriteOp& op = *stage.latent;
  const RopeTable& rope = parts_.ropes[static_cast<std::size_t>(op.rope)];
  const HeadCache cache = parts_.cache.Head(op.cache, 0);
  const GroupPlaces& places = places_.Of(parts_.cache.GroupOf(op.cache));
  const Share share = EvenShare(rows_, threads(), thread);
  for (std::size_t row = share.first; row < share.first + share.count; ++row) {
    const std::size_t angles = AnglesOf(op.rope, row);
    float* const latent = parts_.buffers.View(op.latent).Floats(row);
    PrepareLatentRow(op, parts_.kernels,
                     {parts_.buffers.View(op.queries).Floats(row), latent, stage.norm_weight,
                      rope.cos.data() + angles, rope.sin.data() + angles});
    const CachePlace& cell = places.Cell(row);
    parts_.latent_kernels.write_kv(cache, cell.block, cell.offset, latent, nullptr, false);
  }
}

void StepRunner::RunRows(const Stage& stage, std::size_t thread) {
  StepBuffers& buffers = parts_.buffers;
  const Share share = EvenShare(rows_, threads(), thread);
  const RowRange rows{share.first, share.count};
  const std::size_t columns = parts_.program.Width(stage.out);
  switch (stage.kind) {
    case StageKind::kEmbed:
      return RunEmbed(stage, parts_.program, parts_.weights, buffers, batch_->tokens, rows);
    case StageKind::kPositions:
      return RunPositions(stage, parts_.weights, buffers, places_, columns,
                          buffers.Thread(thread).row, rows);
    case StageKind::kScale:
      return RunScale(stage, buffers, columns, rows);
    case StageKind::kMultiply:
      return RunMultiply(stage, parts_.kernels, buffers, rows);
    case StageKind::kSquares:
      return RunSquares(*stage.squares, parts_.kernels, buffers, rows);
    case StageKind::kWidthNorm:
      return RunWidthNorm(stage, buffers, rows);
    case StageKind::kClamp:
      return RunClamp(*stage.clamp, buffers, rows);
    case StageKind::kXielu:
      return RunXielu(stage, parts_.kernels, buffers, rows);
    default:
      return RunGroupNorm(stage, parts_.kernels, buffers, columns, rows);
  }
}

// The sum includes the padding of the rows, which is zero on every rank.
void StepRunner::AllReduce(const Stage& stage) {
  const BufferView& data = parts_.buffers.View(stage.in);
  status_ = parts_.communicator->AllReduceSum(data.Floats(0), rows_ * data.stride);
}

// ---- contrastive search ----

// Does what SelectNorm does, and writes the hidden state of every row to the plane. It also
// keeps the states of candidates as rows. The logits of candidates are computed after the choice.
void StepRunner::NormAll(const Stage& stage, std::size_t thread) {
  const BufferView& selected = parts_.buffers.View(stage.out);
  const BufferView& units = parts_.buffers.View(Buffer::kNormed);
  const HeadCache plane = parts_.cache.Hidden();
  float* const state = parts_.buffers.Thread(thread).row;
  const Share share = EvenShare(rows_, threads(), thread);
  const NormKernel to_floats = NormFunction(stage.norm_kind, true);
  const NormKernel to_activations = NormFunction(stage.norm_kind, false);
  NormArgs norm;
  norm.add_scale = stage.add_scale;
  norm.weight = stage.norm_weight;
  norm.bias = stage.norm_bias;
  norm.size = parts_.program.Width(stage.in);
  norm.eps = stage.eps;
  const std::vector<CandidateSegment>& candidates = places_.candidates();
  auto next = std::find_if(candidates.begin(), candidates.end(), [&share](const auto& segment) {
    return segment.first_row + segment.rows > share.first;
  });
  for (std::size_t row = share.first; row < share.first + share.count; ++row) {
    norm.input = parts_.buffers.View(stage.in).Floats(row);
    norm.add = stage.add == Buffer::kNone ? nullptr : parts_.buffers.View(stage.add).Floats(row);
    norm.out = state;
    to_floats(norm);
    while (next != candidates.end() && row >= next->first_row + next->rows) ++next;
    const bool candidate = next != candidates.end() && row >= next->first_row;
    if (!candidate && places_.Selected(row) != kNotSelected) {
      norm.add = nullptr;  // it has joined
      norm.out = selected.Row(places_.Selected(row));
      to_activations(norm);
    }
    parts_.kernels.unit_vector(state, norm.size, candidate ? units.Row(row) : nullptr);
    parts_.kernels.write_key(plane, places_.Of(0).Cell(row), state);
  }
}

// The largest of all is the same in whatever order they are compared.
void StepRunner::Similarities(const CandidateSegment& segment, std::span<float> out) {
  const BufferView& units = parts_.buffers.View(Buffer::kNormed);
  largest_.assign(threads() * segment.rows, -__builtin_huge_valf());
  const std::size_t size = parts_.block_size;
  SimilarityArgs whole;
  whole.plane = parts_.cache.Hidden();
  whole.blocks = places_.Of(0).Table(segment.segment);
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
  const auto target = [&](const GroupPlaces& places) {
    const std::uint32_t* const table = places.Table(segment.segment);
    return CachePlace{table[segment.context / parts_.block_size],
                      segment.context % parts_.block_size};
  };
  const std::vector<CacheShape>& caches = parts_.program.caches;
  for (std::size_t cache = 0; cache < caches.size(); ++cache) {
    const GroupPlaces& places = places_.Of(caches[cache].kv_group);
    for (std::size_t head = 0; head < caches[cache].kv_heads; ++head) {
      KernelsOf(cache).copy_kv(parts_.cache.Head(cache, head), places.Cell(chosen), target(places));
    }
  }
  const GroupPlaces& places = places_.Of(0);
  parts_.kernels.copy_key(parts_.cache.Hidden(), places.Cell(chosen), target(places));
  Stage final_norm = stages_.body.back();
  final_norm.add = Buffer::kNone;  // it has joined
  NormRow(final_norm, chosen, parts_.buffers.View(final_norm.out).Row(segment.selected));
}

}  // namespace penstock::shard::cpu
