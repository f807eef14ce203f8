// Runs a Program on a Gpu: enqueues one kernel or GEMM per operation on the stream. Inputs of a
// step lie on the device at fixed addresses, so that calls can be recorded as a graph.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "shard/backend/cuda/device_weights.h"
#include "shard/backend/cuda/expert_runner.h"
#include "shard/backend/cuda/fusion.h"
#include "shard/backend/cuda/gpu.h"
#include "shard/backend/cuda/parts.h"
#include "shard/backend/cuda/program_check.h"
#include "shard/backend/cuda/step_inputs.h"
#include "shard/model/program.h"
#include "shard/parallel/communicator.h"
#include "shard/weights/loader.h"

namespace penstock::shard::cuda {

// K and V of one cache: elements [cache rows, kv_heads, head_dim] each.
struct CacheArrays {
  std::byte* keys = nullptr;
  std::byte* values = nullptr;
};
using CacheView = std::span<const CacheArrays>;  // of Program::caches

class ProgramRunner {
 public:
  struct Choices {
    bool batch_invariant = false;  // all products by SkinnyLinear
    bool fp8_cache = false;        // K and V are e4m3
  };

  // All three outlive the runner.
  ProgramRunner(const Program& program, DType dtype, Gpu& gpu, const CudaParts& parts,
                const Choices& choices)
      : program_(program),
        heads_(HeadsOf(program)),
        dtype_(dtype),
        gpu_(gpu),
        parts_(parts),
        choices_(choices),
        experts_(program, dtype, gpu, choices.batch_invariant),
        weights_(gpu) {}

  absl::Status LoadWeights(const WeightSource& source, const LoadProgress& progress,
                           WeightForm form) {
    return weights_.Load(program_, source, progress, form);
  }

  // The largest step.
  struct Limits {
    std::uint32_t rows = 0;
    std::uint32_t logit_rows = 0;
    std::uint32_t positions = 0;
    std::uint32_t items = 0;
  };
  absl::Status Prepare(const Limits& limits, Communicator* communicator);

  // Chooses the fastest GEMM for each weight and this number of rows. Waits.
  absl::Status TuneGemms(std::uint32_t rows);

  // `samples`: the tokens of the step before, as in EmbedArgs.
  absl::Status RunBody(const DeviceInputs& inputs, CacheView cache, const std::int32_t* samples);

  // Runs the head over rows [first, first + count) of kSelected. HeadLogits then holds float32
  // [world][count, share] on the device.
  absl::Status RunHead(std::uint32_t first, std::uint32_t count);
  float* HeadLogits() const { return static_cast<float*>(logits_.data()); }

  std::uint64_t MemoryBytes() const;

 private:
  struct Step {
    const DeviceInputs* inputs = nullptr;  // null in the head
    CacheView cache;
    std::uint32_t first = 0;  // row of kSelected
    std::uint32_t rows = 0;
    const std::int32_t* samples = nullptr;
  };

  // The size of a matrix [out, in]. The last operation set the width of a buffer's rows.
  struct LinearSize {
    std::uint32_t out = 0;
    std::uint32_t in = 0;
  };

  absl::Status RunAll(const std::vector<Op>& ops, const Step& step);
  absl::Status Run(const EmbedOp& op, const Step& step);
  absl::Status Run(const NormOp& op, const Step& step);
  absl::Status Run(const LinearOp& op, const Step& step);
  absl::Status Run(const HeadNormOp& op, const Step& step);
  absl::Status Run(const RopeKvWriteOp& op, const Step& step);
  absl::Status Run(const AttentionOp& op, const Step& step);
  absl::Status Run(const GatedActivationOp& op, const Step& step);
  absl::Status Run(const ActivationOp& op, const Step& step);
  absl::Status Run(const PositionsOp& op, const Step& step);
  absl::Status Run(const ScaleLogitsOp& op, const Step& step);
  absl::Status Run(const ExpertsOp& op, const Step& step);
  absl::Status Run(const GateRowsOp& op, const Step& step);
  absl::Status Run(const LatentWriteOp& op, const Step& step);
  absl::Status Run(const HeadLinearOp& op, const Step& step);
  absl::Status Run(const GroupNormOp& op, const Step& step);
  absl::Status Run(const MultiplyOp& op, const Step& step);
  absl::Status Run(const ScaleOp& op, const Step& step);
  absl::Status Run(const GateOp& op, const Step& step);
  absl::Status Run(const DeltaNetOp& op, const Step& step);
  absl::Status Run(const ShortConvOp& op, const Step& step);
  absl::Status Run(const XieluOp& op, const Step& step);
  absl::Status Run(const SquaresOp& op, const Step& step);
  absl::Status Run(const WidthNormOp& op, const Step& step);
  absl::Status Run(const ClampOp& op, const Step& step);
  absl::Status Run(const SelectRowsOp& op, const Step& step);
  absl::Status Run(const AllReduceOp& op, const Step& step);
  absl::Status Run(const AllGatherOp& op, const Step& step);

  // Adds the angles of the layer's rope. If they depend on the length, they are inputs of the step.
  void AddAngles(const RopeKvWriteOp& op, const Step& step, RopeArgs& args) const;
  std::uint32_t MostGroupedRows() const;  // of products with a quantized matrix
  bool InGroups(const LinearArgs& args) const;
  absl::Status MultiplyInGroups(LinearArgs args);
  LinearArgs Expanded(LinearArgs args) const;
  // From kLogits to float32, scaled and capped as the program's head says.
  absl::Status WidenLogits(float* to, std::uint64_t count);
  LinearArgs ArgsOf(const LinearOp& op, std::uint32_t rows, std::uint32_t first) const;
  void* Rows(Buffer buffer, std::uint32_t first = 0) const;
  const void* Weight(std::int32_t index) const { return weights_.Of(index); }

  const Program& program_;
  const HeadShape heads_;
  const DType dtype_;
  Gpu& gpu_;
  const CudaParts parts_;
  const Choices choices_;
  ExpertRunner experts_;
  Communicator* communicator_ = nullptr;
  DeviceWeights weights_;
  std::array<GpuMemory, kBufferCount> buffers_;
  struct Angles {
    GpuMemory cos, sin;
  };
  std::map<const AttentionOp*, GpuMemory> slopes_;  // of linear biases
  std::vector<Angles> angles_;  // by rope; empty where they are inputs of the step
  GpuMemory workspace_;         // of attention
  GpuMemory wide_;  // float32: sums over the ranks, a rank's logits before they are gathered
  GpuMemory logits_;
  GpuMemory expanded_;  // bfloat16: the largest stored matrix of another form
};

}  // namespace penstock::shard::cuda
