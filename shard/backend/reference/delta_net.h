// Gated delta nets (DeltaNetOp in shard/model/program.h), one sequence at a time.
#pragma once

#include <cstdint>

#include "shard/backend/reference/aten.h"
#include "shard/backend/reference/batch_inputs.h"
#include "shard/model/program.h"

namespace penstock::shard {

// The states of one layer, float32.
struct DeltaStates {
  at::Tensor inputs;    // [sequences, inputs, channels]
  at::Tensor matrices;  // [sequences, heads, key_dim, value_dim]
  std::uint64_t Bytes() const { return inputs.nbytes() + matrices.nbytes(); }
};

DeltaStates MakeDeltaStates(const StateShape& shape, std::int64_t sequences, at::Device device);

struct DeltaWeights {
  at::Tensor convolution, decay, decay_bias, norm;
};

// Computes the rows of a segment and advances its state. in and out: [rows, width] of the step.
void DeltaNet(const DeltaNetOp& op, const DeltaWeights& weights, const SegmentInputs& segment,
              const DeltaStates& states, const at::Tensor& in, const at::Tensor& out);

}  // namespace penstock::shard
