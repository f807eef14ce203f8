#include "shard/model/delta_net.h"

namespace penstock::shard {

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

WeightTarget DeltaHeads(const std::string& tensor, const DeltaSpec& delta, const RankShare& part) {
  WeightTarget target{tensor, part.delta_values, 1, true, {}};
  target.parts.push_back(
      {tensor, {delta.value_heads}, {part.first_delta_value, part.delta_values}, {0, 1}, 0});
  return target;
}

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

}  // namespace penstock::shard
