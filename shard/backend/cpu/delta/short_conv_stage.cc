#include "shard/backend/cpu/delta/short_conv_stage.h"

#include <algorithm>
#include <array>

#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {

ShortConvStage::ShortConvStage(const ShortConvOp& op, const Kernels& kernels,
                               const WeightStore& weights, const StateStore& states,
                               StepBuffers& buffers, WorkerPool& pool)
    : op_(op),
      kernels_(kernels),
      states_(states),
      buffers_(buffers),
      pool_(pool),
      bias_(op.bias == kNoWeight ? nullptr : weights.Vector(op.bias)),
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

void ShortConvStage::Run(std::size_t rows, std::size_t thread) {
  const Share share = EvenShare(rows, pool_.threads(), thread);
  for (std::size_t row = share.first; row < share.first + share.count; ++row) Mix(row);
  pool_.Barrier();
  const std::vector<StateSegment>& segments = states_.segments();
  auto segment = segments.begin();
  for (std::size_t row = share.first; row < share.first + share.count; ++row) {
    while (row >= std::size_t{segment->first_row} + segment->rows + segment->drafts) ++segment;
    Convolve(*segment, row);
  }
  pool_.Barrier();
  const Share kept = EvenShare(segments.size(), pool_.threads(), thread);
  for (std::size_t i = kept.first; i < kept.first + kept.count; ++i) KeepInputs(segments[i]);
}

const float* ShortConvStage::Input(const StateSegment& segment, std::size_t index) const {
  const std::size_t inputs = op_.shape.inputs;
  if (index >= inputs) return buffers_.View(op_.mixed).Floats(segment.first_row + index - inputs);
  if (segment.begins) return zeros_.data();
  return states_.Inputs(op_.state, segment.place) + index * op_.shape.channels;
}

void ShortConvStage::Mix(std::size_t row) {
  const std::size_t channels = op_.shape.channels;
  const float* const b = buffers_.View(op_.in).Floats(row);
  const float* const x = b + 2 * channels;
  float* const mixed = buffers_.View(op_.mixed).Floats(row);
  for (std::size_t i = 0; i < channels; ++i) mixed[i] = b[i] * x[i];
}

void ShortConvStage::Convolve(const StateSegment& segment, std::size_t row) {
  const std::size_t channels = op_.shape.channels, taps = op_.shape.inputs + 1;
  std::array<const float*, kMostTaps> inputs = {};
  for (std::size_t tap = 0; tap < taps; ++tap) {
    inputs[tap] = Input(segment, row - segment.first_row + tap);
  }
  float* const c = buffers_.View(op_.in).Floats(row) + channels;
  for (std::size_t i = 0; i < channels; ++i) {
    float sum = 0.0f;
    for (std::size_t tap = 0; tap < taps; ++tap) {
      sum += convolution_[tap * channels + i] * inputs[tap][i];
    }
    c[i] *= bias_ == nullptr ? sum : sum + bias_[i];
  }
  kernels_.copy({.input = c, .size = channels, .out = buffers_.View(op_.out).Row(row)});
}

// The state of the slot itself is written last: the snapshots are computed from its old value.
void ShortConvStage::KeepInputs(const StateSegment& segment) {
  for (std::uint32_t draft = 0; draft < segment.drafts; ++draft) {
    KeepInputs(segment, segment.rows + draft + 1, states_.DraftPlace(segment.first_draft + draft));
  }
  KeepInputs(segment, segment.rows, segment.place);
}

// In ascending order: an input moves to a place before its own.
void ShortConvStage::KeepInputs(const StateSegment& segment, std::size_t rows, std::size_t place) {
  const std::size_t channels = op_.shape.channels;
  float* const kept = states_.Inputs(op_.state, place);
  for (std::size_t i = 0; i < op_.shape.inputs; ++i) {
    std::copy_n(Input(segment, rows + i), channels, kept + i * channels);
  }
}

}  // namespace penstock::shard::cpu
