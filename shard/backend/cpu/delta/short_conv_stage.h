// A gated short convolution (ShortConvOp) on the threads of a pool, which share the rows. Each row
// is computed in the same way in prompts and in decodes. So bits do not depend on chunks, other
// sequences or threads.
//
// Threads: all threads of the pool call Run with their own number; it has barriers inside.
#pragma once

#include <cstddef>
#include <vector>

#include "shard/backend/cpu/delta/state_store.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "shard/model/program.h"

namespace penstock::shard::cpu {

class ShortConvStage {
 public:
  // All outlive it.
  ShortConvStage(const ShortConvOp& op, const Kernels& kernels, const WeightStore& weights,
                 const StateStore& states, StepBuffers& buffers, WorkerPool& pool);

  // Computes the segments of the states' present step, which have `rows` rows in all.
  void Run(std::size_t rows, std::size_t thread);

 private:
  void Mix(std::size_t row);
  // Overwrites c of the row.
  void Convolve(const StateSegment& segment, std::size_t row);
  // Keeps the newest inputs for the next step, in each state of the segment.
  void KeepInputs(const StateSegment& segment);
  void KeepInputs(const StateSegment& segment, std::size_t rows, std::size_t place);
  // Input `index` of the segment, counted from the first that the state holds.
  const float* Input(const StateSegment& segment, std::size_t index) const;

  const ShortConvOp& op_;
  const Kernels& kernels_;
  const StateStore& states_;
  StepBuffers& buffers_;
  WorkerPool& pool_;
  std::vector<float> convolution_;  // [taps][channels]
  const float* const bias_;         // or null
  std::vector<float> zeros_;        // [channels]: inputs before the text
};

}  // namespace penstock::shard::cpu
