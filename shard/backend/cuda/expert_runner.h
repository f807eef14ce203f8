// Runs the ExpertsOps of a Program. Owns their scratch and tables of their matrices on the device.
//
// Threading: the model thread.
#pragma once

#include <absl/status/status.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>

#include "shard/backend/cuda/gpu.h"
#include "shard/model/program.h"

namespace penstock::shard::cuda {

class ExpertRunner {
 public:
  // Where a weight lies on the device; null for kNoWeight.
  using WeightAt = std::function<const void*(WeightIndex)>;

  // `program` and `gpu` outlive the runner.
  ExpertRunner(const Program& program, DType dtype, Gpu& gpu, bool batch_invariant)
      : program_(program), dtype_(dtype), gpu_(gpu), batch_invariant_(batch_invariant) {}

  // For steps of at most `rows` rows.
  absl::Status Prepare(std::uint32_t rows, const WeightAt& weight);

  // On the device.
  struct Buffers {
    const void* in = nullptr;
    const void* scores = nullptr;
    void* out = nullptr;
  };
  absl::Status Run(const ExpertsOp& op, const Buffers& buffers, std::uint32_t rows);

  std::uint64_t MemoryBytes() const;

 private:
  // Pointers to weights, one for each expert. Null where no expert has one.
  struct Tables {
    GpuMemory memory;
    const void* const* gate_up = nullptr;
    const void* const* down = nullptr;
    const void* const* gate_up_bias = nullptr;
    const void* const* down_bias = nullptr;
    const void* choice_bias = nullptr;
    const void* expert_scale = nullptr;
  };
  absl::StatusOr<Tables> MakeTables(const ExpertsOp& op, const WeightAt& weight);
  absl::Status AllocateScratch(std::uint32_t rows);
  absl::Status Choose(const ExpertsOp& op, const Tables& tables, const void* scores,
                      std::uint32_t rows);
  absl::Status Products(const ExpertsOp& op, const Tables& tables, const void* in,
                        std::uint32_t slots);
  absl::Status Gate(const ExpertsOp& op, std::uint32_t slots);

  const Program& program_;
  const DType dtype_;
  Gpu& gpu_;
  const bool batch_invariant_;
  std::map<const ExpertsOp*, Tables> tables_;
  // By choice or slot, but for `first_`.
  GpuMemory choices_, weights_, slots_, choice_of_, first_;
  GpuMemory weighed_, up_, middle_, results_;
};

}  // namespace penstock::shard::cuda
