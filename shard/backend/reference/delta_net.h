// Gated delta nets and short convolutions (DeltaNetOp and ShortConvOp in shard/model/program.h),
// one sequence at a time.
#pragma once

#include <cstdint>

#include "shard/backend/reference/aten.h"
#include "shard/backend/reference/batch_inputs.h"
#include "shard/model/program.h"

namespace penstock::shard {

// The states of one layer, float32: that of each sequence, then one after each draft of a step,
// then snapshots.
struct DeltaStates {
  at::Tensor inputs;    // [states, inputs, channels]
  at::Tensor matrices;  // [states, heads, key_dim, value_dim]
  std::int64_t sequences = 0;
  std::int64_t drafts = 0;
  std::int64_t Place(BlockId snapshot) const { return sequences + drafts + snapshot.value(); }
  std::uint64_t Bytes() const { return inputs.nbytes() + matrices.nbytes(); }
  void Copy(std::int64_t from, std::int64_t to) const;
};

DeltaStates MakeDeltaStates(const StateShape& shape, const BackendLimits& limits,
                            std::int64_t snapshots, at::Device device);

struct DeltaWeights {
  at::Tensor convolution, decay, decay_bias, norm;
};

// Computes the rows of a segment. Advances its state up to its first draft, and leaves a state
// after each draft. in and out: [rows, width] of the step.
void DeltaNet(const DeltaNetOp& op, const DeltaWeights& weights, const SegmentInputs& segment,
              const DeltaStates& states, const at::Tensor& in, const at::Tensor& out);

// The same for a short convolution. `bias` may be undefined.
void ShortConv(const ShortConvOp& op, const at::Tensor& convolution, const at::Tensor& bias,
               const SegmentInputs& segment, const DeltaStates& states, const at::Tensor& in,
               const at::Tensor& out);

}  // namespace penstock::shard
