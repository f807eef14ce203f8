// Runs the operations of a Program on ATen tensors.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <vector>

#include "shard/backend/reference/adapters.h"
#include "shard/backend/reference/aten.h"
#include "shard/backend/reference/batch_inputs.h"
#include "shard/backend/reference/decode_attention.h"
#include "shard/backend/reference/delta_net.h"
#include "shard/backend/reference/kv_store.h"
#include "shard/model/program.h"
#include "shard/parallel/communicator.h"

namespace penstock::shard {

// Angles of one RopeSpec: float [rows, 1, rope.dim / 2].
struct RopeAngles {
  at::Tensor cos, sin;
};

// The rows that are computed. `first` counts in kSelected; other buffers begin at row 0.
struct ComputedRows {
  std::int64_t first = 0;
  std::int64_t count = 0;         // without padding
  std::int64_t padded_count = 0;  // with padding
};

// What operations read and write.
struct ProgramTensors {
  at::Tensor& Whole(Buffer buffer) { return buffers[static_cast<std::size_t>(buffer)]; }

  std::vector<at::Tensor> weights;
  std::array<at::Tensor, kBufferCount> buffers;
  at::Tensor reduce;       // float staging of AllReduce for 16-bit types
  at::Tensor gathered;     // float [world, max_logit_rows, vocabulary share]
  at::Tensor host_logits;  // float [max_logit_rows, vocabulary]
  KvStore cache;
  std::vector<DeltaStates> states;  // of Program::states

  // For the present step.
  BatchInputs inputs;
  std::vector<PartQueries> part_queries;
  std::vector<RopeAngles> ropes;  // of Program::ropes; rows are those of the step
  ComputedRows rows;
  // By row, and by logit row; empty if no row has an adapter.
  std::vector<const ReferenceAdapter*> row_adapters;
  std::vector<const ReferenceAdapter*> logit_adapters;
};

class OperationRunner {
 public:
  // All outlive it. The communicator is null with world 1.
  OperationRunner(const Program& program, Communicator* communicator, ProgramTensors& tensors)
      : program_(program), communicator_(communicator), tensors_(tensors) {}

  absl::Status RunAll(const std::vector<Op>& ops);

 private:
  void Run(const EmbedOp& op);
  void Run(const PositionsOp& op);
  void Run(const NormOp& op);
  void Run(const LinearOp& op);
  void Run(const HeadNormOp& op);
  void Run(const RopeKvWriteOp& op);
  void Run(const AttentionOp& op);
  void Run(const GatedActivationOp& op);
  void Run(const ActivationOp& op);
  void Run(const XieluOp& op);
  void Run(const ExpertsOp& op);
  void Run(const GateRowsOp& op);
  void Run(const GateOp& op);
  void Run(const DeltaNetOp& op);
  void Run(const ShortConvOp& op);
  void Run(const SelectRowsOp& op);
  void Run(const ScaleLogitsOp& op);
  void Run(const LatentWriteOp& op);
  void Run(const HeadLinearOp& op);
  void Run(const GroupNormOp& op);
  void Run(const MultiplyOp& op);
  void Run(const ScaleOp& op);
  void Run(const SquaresOp& op);
  void Run(const WidthNormOp& op);
  void Run(const ClampOp& op);
  absl::Status Run(const AllReduceOp& op);
  absl::Status Run(const AllGatherOp& op);

  const at::Tensor& Weight(WeightIndex index) const {
    return index == kNoWeight ? no_weight_ : tensors_.weights[static_cast<std::size_t>(index)];
  }
  // Where K and V of the rows go in a cache.
  const at::Tensor& SlotsOf(std::uint32_t cache) const {
    return tensors_.inputs.kv_slots[tensors_.cache.GroupOf(cache)];
  }
  at::Tensor& Whole(Buffer buffer) { return tensors_.Whole(buffer); }
  at::Tensor Padded(Buffer buffer) {
    return Whole(buffer).narrow(0, FirstRow(buffer), tensors_.rows.padded_count);
  }
  std::int64_t FirstRow(Buffer buffer) const {
    return buffer == Buffer::kSelected ? tensors_.rows.first : 0;
  }
  // Adds what the adapters of the rows add to a product.
  void AddAdapters(const LinearOp& op, const at::Tensor& in, const at::Tensor& out);
  // [rows, heads, dim] view of `heads` heads of `qkv`, which begin at `column`.
  at::Tensor Heads(Buffer qkv, std::int64_t column, std::int64_t heads, std::int64_t dim);

  const Program& program_;
  Communicator* const communicator_;
  ProgramTensors& tensors_;
  const at::Tensor no_weight_;  // undefined
};

}  // namespace penstock::shard
