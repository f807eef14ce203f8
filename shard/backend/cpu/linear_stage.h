// The GEMM of a stage on the threads of a pool.
//
// Threading: all threads of the pool call Run together, with a barrier between two calls.
#pragma once

#include <cstddef>

#include "shard/backend/cpu/adapters/adapted_rows.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/stages.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/backend/cpu/threads/shared_work.h"
#include "shard/backend/cpu/threads/worker_pool.h"

namespace penstock::shard::cpu {

class LinearStage {
 public:
  // All outlive it.
  LinearStage(const Kernels& kernels, StepBuffers& buffers, WorkerPool& pool)
      : kernels_(kernels),
        buffers_(buffers),
        pool_(pool),
        columns_(pool.threads(), pool.placement()) {}

  // One thread's share. `whole`: the input and the output of all rows. `adapters`: of these rows;
  // empty: none of them changes the product.
  void Run(const Stage& stage, const GemmArgs& whole, RowAdapters adapters, std::size_t thread);

 private:
  // The arguments with the input quantised. If rows are few, each thread quantises all of them for
  // itself; else the threads share them, with a barrier.
  GemmArgs Quantized(const Stage& stage, const GemmArgs& whole, std::size_t thread);
  // Columns `part` of the product, with what the adapters add.
  void RunAdapted(const AdapterProduct& product, GemmArgs args, std::size_t first_row,
                  const PackedMatrix& matrix, Share part, std::size_t thread);

  const Kernels& kernels_;
  StepBuffers& buffers_;
  WorkerPool& pool_;
  SharedWork columns_;  // of the present GEMM, in units
};

}  // namespace penstock::shard::cpu
