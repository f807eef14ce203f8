// A HeadLinearOp on the threads of a pool: for each head a GEMM of its own. A thread computes some
// rows of one head, from scratch of its own, so the stage has no barrier.
#pragma once

#include <cstddef>

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "shard/model/program.h"

namespace penstock::shard::cpu {

class HeadLinear {
 public:
  // All outlive it.
  HeadLinear(const HeadLinearOp& op, const Kernels& kernels, const WeightStore& weights,
             StepBuffers& buffers)
      : op_(op), kernels_(kernels), weights_(weights), buffers_(buffers) {}

  // One thread's share of all rows and heads.
  void Run(std::size_t rows, std::size_t threads, std::size_t thread) const;

 private:
  // Rows [first, first + count) of a head, count <= kHeadRows.
  void Compute(std::size_t head, std::size_t first, std::size_t count,
               ThreadScratch& scratch) const;
  // Copies the head's part of the rows to the scratch, as activations with zeros after them.
  void LoadRows(std::size_t head, std::size_t first, std::size_t count,
                const HeadScratch& scratch) const;
  // `rest` dimensions pass the product.
  void CopyRest(std::size_t head, std::size_t first, std::size_t count) const;
  std::byte* InputAt(std::size_t row, std::size_t head) const;
  std::byte* OutputAt(std::size_t row, std::size_t head) const;

  const HeadLinearOp& op_;
  const Kernels& kernels_;
  const WeightStore& weights_;
  StepBuffers& buffers_;
};

}  // namespace penstock::shard::cpu
