// Experts of a mixture on the threads of a pool. The rows of a step are sorted by expert, so that
// each expert is one product over all rows that chose it. A row's result does not depend on the
// other rows: a GEMM computes each row by itself, and a row adds its experts in ascending order.
//
// A gated product ends with its activation. For a bounded gate the product is stored as it is, and
// the gate is a step of its own.
//
// Threads: all threads of the pool call Run with their own number; it has barriers inside.
#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/backend/cpu/experts/routing.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "shard/model/program.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {

// Scratch for the largest ExpertsOp of a program, shared by all its layers. One slot is one row of
// one chosen expert.
class ExpertBuffers {
 public:
  // Empty if the program has no experts.
  static absl::StatusOr<ExpertBuffers> Create(const Program& program, const Kernels& kernels,
                                              const FormatKernels& format, std::size_t rows);

  BufferView in;      // activations [slots, hidden]
  BufferView wide;    // float32 [slots, 2 * width], only if a gate is bounded
  BufferView middle;  // activations [slots, width]
  BufferView out;     // float32 [slots, hidden]
  IntegerRows integers;
  std::uint64_t bytes() const { return region_.bytes(); }

 private:
  MemoryRegion region_;
};

class ExpertStage {
 public:
  // All outlive it.
  ExpertStage(const ExpertsOp& op, const Program& program, const Kernels& kernels,
              const WeightStore& weights, const ExpertBuffers& expert_buffers, StepBuffers& buffers,
              WorkerPool& pool);

  void Run(std::size_t rows, std::size_t thread);

 private:
  // A piece of one expert's product.
  struct Piece {
    std::uint32_t expert = 0;
    std::uint32_t first = 0;  // unit
    std::uint32_t count = 0;
  };

  void Sort(std::size_t rows);
  void Gather(std::size_t rows, std::size_t thread);
  // One of the two products of each expert, in pieces that the threads take in turn.
  void Products(bool down, std::size_t thread);
  void Gate(std::size_t slots, std::size_t thread);  // the bounded gate
  void QuantizeMiddle(std::size_t slots, std::size_t thread);
  void Sum(std::size_t rows, std::size_t thread);
  void CutIntoPieces(bool down);
  void Quantize(const PackedMatrix& matrix, const BufferView& from, std::size_t row,
                std::size_t slot) const;

  const ExpertsOp& op_;
  const Program& program_;
  const Kernels& kernels_;
  const WeightStore& weights_;
  const ExpertBuffers& own_;
  StepBuffers& buffers_;
  WorkerPool& pool_;
  const Expert& own_expert_;  // the first of this rank: all have equal shapes
  const Router router_;
  std::vector<Router::Scratch> scratch_;    // by thread
  std::vector<Choice> choices_;             // [rows, chosen]
  std::vector<std::uint32_t> slots_;        // of each choice
  std::vector<std::uint32_t> first_slots_;  // by expert, and the end
  std::vector<Piece> pieces_[2];            // of up and down
  std::atomic<std::size_t> next_[2] = {0, 0};
};

}  // namespace penstock::shard::cpu
