#include "shard/backend/reference/delta_net.h"

#include <cmath>

#include "shard/backend/reference/operations.h"

namespace penstock::shard {
namespace {

// `heads` heads of `dim` columns of a row, from `column` on: [heads, dim].
at::Tensor Heads(const at::Tensor& row, std::int64_t column, std::int64_t heads, std::int64_t dim) {
  return row.narrow(0, column, heads * dim).view({heads, dim});
}

at::Tensor UnitLength(const at::Tensor& x) {
  return x.mul(x.square().sum(-1, true).add_(1e-6).rsqrt_());
}

// log(1 + e^x)
at::Tensor Softplus(const at::Tensor& x) {
  return x.clamp_min(0).add_(x.abs().neg_().exp_().log1p_());
}

// The convolution of a row. `kept` holds the inputs before it and gets the row's own.
at::Tensor Convolve(const at::Tensor& weights, const at::Tensor& row, at::Tensor kept) {
  const std::int64_t inputs = kept.size(0);
  const at::Tensor all = at::cat({kept, row.narrow(0, 0, kept.size(1)).unsqueeze(0)});
  kept.copy_(all.narrow(0, 1, inputs));
  return all.mul(weights).sum(0);
}

void ClearAtBegin(const SegmentInputs& segment, const DeltaStates& states) {
  if (segment.context_length > 0) return;
  states.inputs.select(0, segment.state).zero_();
  states.matrices.select(0, segment.state).zero_();
}

// Calls `compute` with each row of a segment and the place of its state. A draft has a state of its
// own, which begins as that before it.
template <class Compute>
void ForRows(const SegmentInputs& segment, const DeltaStates& states, const Compute& compute) {
  const std::int64_t end = segment.query_start + segment.query_count;
  std::int64_t place = segment.state;
  for (std::int64_t i = segment.query_start; i < end; ++i) {
    const std::int64_t draft = i - (end - segment.drafts);
    if (draft >= 0) {
      const std::int64_t next = states.sequences + segment.first_draft + draft;
      states.Copy(place, next);
      place = next;
    }
    compute(i, place);
  }
}

// The results of a row, [heads, value_dim]. `state` is [heads, key_dim, value_dim].
at::Tensor DeltaRule(const DeltaNetOp& op, const DeltaWeights& weights, const at::Tensor& row,
                     const at::Tensor& mixed, at::Tensor state) {
  const StateShape& shape = op.shape;
  const auto keys = [&](std::int64_t column) {
    const at::Tensor heads = UnitLength(Heads(mixed, column, op.key_heads, shape.key_dim));
    return heads.repeat_interleave(op.Group(), 0).unsqueeze(-1);
  };
  const at::Tensor query = keys(0).div_(std::sqrt(static_cast<double>(shape.key_dim)));
  const at::Tensor key = keys(op.KeyWidth());
  const std::int64_t values = 2 * std::int64_t{op.KeyWidth()};
  const at::Tensor value = Heads(mixed, values, shape.heads, shape.value_dim);
  const at::Tensor beta = Heads(row, op.BetaColumn(), shape.heads, 1).sigmoid();
  const at::Tensor slope =
      Softplus(row.narrow(0, op.DecayColumn(), shape.heads).add(weights.decay_bias.to(at::kFloat)));
  const at::Tensor decay = slope.mul(weights.decay.to(at::kFloat).exp()).neg_().exp_();
  state.mul_(decay.unsqueeze(-1).unsqueeze(-1));
  const at::Tensor change = value.sub(state.mul(key).sum(1)).mul_(beta);
  state.add_(key.mul(change.unsqueeze(1)));
  return state.mul(query).sum(1);
}

}  // namespace

void DeltaStates::Copy(std::int64_t from, std::int64_t to) const {
  inputs.select(0, to).copy_(inputs.select(0, from));
  matrices.select(0, to).copy_(matrices.select(0, from));
}

DeltaStates MakeDeltaStates(const StateShape& shape, const BackendLimits& limits,
                            std::int64_t snapshots, at::Device device) {
  const std::int64_t sequences = limits.max_sequences, drafts = limits.max_draft_rows;
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  const std::int64_t inputs = shape.inputs, channels = shape.channels;
  const std::int64_t heads = shape.heads, key_dim = shape.key_dim, value_dim = shape.value_dim;
  const std::int64_t states = sequences + drafts + snapshots;
  return {at::zeros({states, inputs, channels}, options),
          at::zeros({states, heads, key_dim, value_dim}, options), sequences, drafts};
}

// Row by row: vector and scalar routines of libtorch may differ in the last bit, and which of them
// computes an element depends on the shape.
void DeltaNet(const DeltaNetOp& op, const DeltaWeights& weights, const SegmentInputs& segment,
              const DeltaStates& states, const at::Tensor& in, const at::Tensor& out) {
  const StateShape& shape = op.shape;
  ClearAtBegin(segment, states);
  const at::Tensor convolution = weights.convolution.to(at::kFloat).t().contiguous();
  ForRows(segment, states, [&](std::int64_t i, std::int64_t place) {
    const at::Tensor row = in.select(0, i).to(at::kFloat);
    const at::Tensor mixed = at::silu(Convolve(convolution, row, states.inputs.select(0, place)));
    const at::Tensor result = DeltaRule(op, weights, row, mixed, states.matrices.select(0, place));
    RmsNorm(result, weights.norm, 0.0, op.eps, result);
    const at::Tensor gate = Heads(row, op.GateColumn(), shape.heads, shape.value_dim);
    out.select(0, i).copy_(result.mul(at::silu(gate)).view({std::int64_t{op.ValueWidth()}}));
  });
}

void ShortConv(const ShortConvOp& op, const at::Tensor& convolution, const at::Tensor& bias,
               const SegmentInputs& segment, const DeltaStates& states, const at::Tensor& in,
               const at::Tensor& out) {
  ClearAtBegin(segment, states);
  const std::int64_t channels = op.shape.channels;
  const at::Tensor taps = convolution.to(at::kFloat).t().contiguous();
  ForRows(segment, states, [&](std::int64_t i, std::int64_t place) {
    const at::Tensor row = in.select(0, i).to(at::kFloat);
    const at::Tensor mixed = row.narrow(0, 0, channels).mul(row.narrow(0, 2 * channels, channels));
    at::Tensor sum = Convolve(taps, mixed, states.inputs.select(0, place));
    if (bias.defined()) sum = sum.add(bias.to(at::kFloat));
    out.select(0, i).copy_(sum.mul(row.narrow(0, channels, channels)));
  });
}

}  // namespace penstock::shard
