#include "shard/model/delta_net.h"

#include <cstdint>

namespace penstock::shard {
namespace {

// With all sizes, without weights and the index of its state.
DeltaNetOp DeltaOperation(const DeltaSpec& delta, const RankShare& part, float eps) {
  DeltaNetOp op{.in = Buffer::kDelta, .mixed = Buffer::kDeltaMixed, .out = Buffer::kDeltaOut};
  op.key_heads = part.delta_keys;
  op.shape = {.inputs = delta.kernel - 1,
              .heads = part.delta_values,
              .key_dim = delta.key_dim,
              .value_dim = delta.value_dim};
  op.shape.channels = 2 * op.KeyWidth() + op.ValueWidth();
  op.eps = eps;
  return op;
}

// One number for each value head.
WeightTarget DeltaHeads(const std::string& tensor, const DeltaSpec& delta, const RankShare& part) {
  WeightTarget target{tensor, part.delta_values, 1, true, {}};
  target.parts.push_back(
      {tensor, {delta.value_heads}, {part.first_delta_value, part.delta_values}, {0, 1}, 0});
  return target;
}

// The convolution: the channels of the queries, those of the keys, then those of the values.
WeightTarget DeltaConvolution(const std::string& tensor, const DeltaSpec& delta,
                              const RankShare& part) {
  const std::uint64_t keys = delta.KeyWidth(), channels = 2 * keys + delta.ValueWidth();
  const Range key_rows{std::uint64_t{part.first_delta_key} * delta.key_dim,
                       std::uint64_t{part.delta_keys} * delta.key_dim};
  const Range value_rows{2 * keys + std::uint64_t{part.first_delta_value} * delta.value_dim,
                         std::uint64_t{part.delta_values} * delta.value_dim};
  WeightTarget target{tensor, 0, delta.kernel, false, {}};
  for (const Range& rows : {key_rows, Range{keys + key_rows.first, key_rows.count}, value_rows}) {
    target.parts.push_back(
        {tensor, {channels, 1, delta.kernel}, rows, {0, delta.kernel}, target.rows});
    target.rows += rows.count;
  }
  return target;
}

}  // namespace

class DeltaNetBuilder {
 public:
  explicit DeltaNetBuilder(DecoderBuilder& b) : b_(b) {}

  void Build(const std::string& name, const std::vector<RowSlice>& projections) {
    const DeltaSpec& all = b_.spec_.delta;
    DeltaNetOp op = DeltaOperation(all, b_.part_, b_.spec_.norm_eps);
    b_.Widen(op.in, op.DecayColumn() + op.shape.heads);
    b_.Widen(op.mixed, op.shape.channels);
    b_.Widen(op.out, op.ValueWidth());
    b_.Add(b_.RowLinear("delta", op.in, projections));
    op.convolution =
        b_.AddTarget(DeltaConvolution(b_.Name(name + ".conv1d.weight"), all, b_.part_));
    op.decay = b_.AddTarget(DeltaHeads(b_.Name(name + ".A_log"), all, b_.part_));
    op.decay_bias = b_.AddTarget(DeltaHeads(b_.Name(name + ".dt_bias"), all, b_.part_));
    op.norm = b_.Vector(b_.Name(name + ".norm.weight"), all.value_dim);
    op.state = static_cast<std::uint32_t>(b_.built_.program.states.size());
    b_.built_.program.states.push_back(op.shape);
    b_.Add(op);
    const std::uint64_t dim = all.value_dim;
    b_.ColumnLinear(name + ".out_proj", op.out, all.ValueWidth(),
                    {b_.part_.first_delta_value * dim, b_.part_.delta_values * dim});
  }

 private:
  DecoderBuilder& b_;
};

void AddDeltaNet(DecoderBuilder& b, const std::string& name,
                 const std::vector<RowSlice>& projections) {
  DeltaNetBuilder(b).Build(name, projections);
}

}  // namespace penstock::shard
