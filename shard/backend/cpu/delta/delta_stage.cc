#include "shard/backend/cpu/delta/delta_stage.h"

#include <algorithm>
#include <cmath>

#include "common/dtype.h"
#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {
namespace {

static_assert(kMostInputs >= kMostTaps);

// log(1 + e^x)
float Softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::fabs(x))); }

}  // namespace

DeltaStage::DeltaStage(const DeltaNetOp& op, const Kernels& kernels, const WeightStore& weights,
                       const StateStore& states, StepBuffers& buffers, WorkerPool& pool)
    : op_(op),
      kernels_(kernels),
      states_(states),
      buffers_(buffers),
      pool_(pool),
      decay_(weights.Vector(op.decay)),
      decay_bias_(weights.Vector(op.decay_bias)),
      norm_(weights.Vector(op.norm)),
      zeros_(op.shape.channels, 0.0f) {
  const float* const stored = weights.Vector(op.convolution);  // [channels][taps]
  const std::size_t taps = op.shape.inputs + 1, channels = op.shape.channels;
  convolution_.resize(taps * channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t tap = 0; tap < taps; ++tap) {
      convolution_[tap * channels + channel] = stored[channel * taps + tap];
    }
  }
}

void DeltaStage::Run(std::size_t rows, std::size_t thread) {
  const std::vector<StateSegment>& segments = states_.segments();
  const std::size_t keys = op_.key_heads, heads = op_.shape.heads;
  const Share mixed = EvenShare(rows * keys, pool_.threads(), thread);
  auto segment = segments.begin();
  for (std::size_t i = mixed.first; i < mixed.first + mixed.count; ++i) {
    const std::size_t row = i / keys;
    while (row >= std::size_t{segment->first_row} + segment->rows + segment->drafts) ++segment;
    Mix(*segment, row, i % keys);
  }
  pool_.Barrier();
  // Segments are the inner index: a thread then has the same share of short and of long ones.
  const std::size_t blocks = StateStore::BlocksOf(op_.shape);
  const Share advanced = EvenShare(heads * blocks * segments.size(), pool_.threads(), thread);
  for (std::size_t i = advanced.first; i < advanced.first + advanced.count; ++i) {
    const std::size_t part = i / segments.size();
    Advance(segments[i % segments.size()], part / blocks, part % blocks);
  }
  pool_.Barrier();
  const Share normed = EvenShare(rows * heads, pool_.threads(), thread);
  for (std::size_t i = normed.first; i < normed.first + normed.count; ++i) {
    NormHead(i / heads, i % heads);
  }
  const Share kept = EvenShare(segments.size(), pool_.threads(), thread);
  for (std::size_t i = kept.first; i < kept.first + kept.count; ++i) KeepInputs(segments[i]);
}

const float* DeltaStage::Input(const StateSegment& segment, std::size_t index) const {
  const std::size_t inputs = op_.shape.inputs;
  if (index >= inputs) return buffers_.View(op_.in).Floats(segment.first_row + index - inputs);
  if (segment.begins) return zeros_.data();
  return states_.Inputs(op_.state, segment.place) + index * op_.shape.channels;
}

void DeltaStage::Mix(const StateSegment& segment, std::size_t row, std::size_t key_head) {
  const std::size_t dim = op_.shape.key_dim, group = op_.Group();
  const std::size_t query = key_head * dim, key = op_.KeyWidth() + query;
  const std::size_t values = group * op_.shape.value_dim;
  Convolve(segment, row, query, dim);
  Convolve(segment, row, key, dim);
  Convolve(segment, row, 2 * op_.KeyWidth() + key_head * values, values);
  float* const mixed = buffers_.View(op_.mixed).Floats(row);
  kernels_.scale_to_length(mixed + query, dim, 1.0f / std::sqrt(static_cast<float>(dim)));
  kernels_.scale_to_length(mixed + key, dim, 1.0f);
  for (std::size_t i = 0; i < group; ++i) SetGates(row, key_head * group + i);
}

void DeltaStage::Convolve(const StateSegment& segment, std::size_t row, std::size_t first,
                          std::size_t count) {
  ConvolutionArgs args;
  args.taps = op_.shape.inputs + 1;
  for (std::size_t tap = 0; tap < args.taps; ++tap) {
    args.inputs[tap] = Input(segment, row - segment.first_row + tap) + first;
  }
  args.weights = convolution_.data() + first;
  args.weight_stride = op_.shape.channels;
  args.size = count;
  args.out = buffers_.View(op_.mixed).Floats(row) + first;
  kernels_.convolve(args);
}

void DeltaStage::SetGates(std::size_t row, std::size_t head) {
  float* const in = buffers_.View(op_.in).Floats(row);
  float& beta = in[op_.BetaColumn() + head];
  float& decay = in[op_.DecayColumn() + head];
  beta = 1.0f / (1.0f + std::exp(-beta));
  decay = std::exp(-std::exp(decay_[head]) * Softplus(decay + decay_bias_[head]));
}

void DeltaStage::Advance(const StateSegment& segment, std::size_t head, std::size_t block) {
  const StateShape& shape = op_.shape;
  const BufferView& in = buffers_.View(op_.in);
  const BufferView& mixed = buffers_.View(op_.mixed);
  const std::size_t first = block * kDeltaColumns;
  float* const row = mixed.Floats(segment.first_row);
  DeltaArgs args;
  args.state = states_.Block(op_.state, segment.place, head, block);
  args.query = row + head / op_.Group() * shape.key_dim;
  args.key = args.query + op_.KeyWidth();
  args.value = row + 2 * op_.KeyWidth() + head * shape.value_dim + first;
  args.stride = mixed.stride;
  args.decay = in.Floats(segment.first_row) + op_.DecayColumn() + head;
  args.beta = in.Floats(segment.first_row) + op_.BetaColumn() + head;
  args.gate_stride = in.stride;
  args.rows = segment.rows;
  args.key_dim = shape.key_dim;
  args.columns = std::min<std::size_t>(kDeltaColumns, shape.value_dim - first);
  const std::size_t size = shape.key_dim * kDeltaColumns;
  if (segment.begins) std::fill_n(args.state, size, 0.0f);
  kernels_.delta_rule(args);
  for (std::uint32_t draft = 0; draft < segment.drafts; ++draft) {
    const float* const before = args.state;
    const std::uint32_t place = states_.DraftPlace(segment.first_draft + draft);
    args.state = states_.Block(op_.state, place, head, block);
    std::copy_n(before, size, args.state);
    args.query += args.rows * args.stride;
    args.key += args.rows * args.stride;
    args.value += args.rows * args.stride;
    args.decay += args.rows * args.gate_stride;
    args.beta += args.rows * args.gate_stride;
    args.rows = 1;
    kernels_.delta_rule(args);
  }
}

void DeltaStage::NormHead(std::size_t row, std::size_t head) {
  const std::size_t dim = op_.shape.value_dim;
  GatedNormArgs args;
  args.input = buffers_.View(op_.mixed).Floats(row) + 2 * op_.KeyWidth() + head * dim;
  args.gate = buffers_.View(op_.in).Floats(row) + op_.GateColumn() + head * dim;
  args.weight = norm_;
  args.size = dim;
  args.eps = op_.eps;
  const BufferView& out = buffers_.View(op_.out);
  args.out = out.Row(row) + head * dim * out.element;
  kernels_.gated_norm(args);
}

// The state of the slot itself is written last: the snapshots are computed from its old value.
void DeltaStage::KeepInputs(const StateSegment& segment) {
  for (std::uint32_t draft = 0; draft < segment.drafts; ++draft) {
    KeepInputs(segment, segment.rows + draft + 1, states_.DraftPlace(segment.first_draft + draft));
  }
  KeepInputs(segment, segment.rows, segment.place);
}

// In ascending order: an input moves to a place before its own.
void DeltaStage::KeepInputs(const StateSegment& segment, std::size_t rows, std::size_t place) {
  const std::size_t channels = op_.shape.channels;
  float* const kept = states_.Inputs(op_.state, place);
  for (std::size_t i = 0; i < op_.shape.inputs; ++i) {
    std::copy_n(Input(segment, rows + i), channels, kept + i * channels);
  }
}

}  // namespace penstock::shard::cpu
