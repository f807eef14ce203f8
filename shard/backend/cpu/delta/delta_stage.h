// A gated delta net (DeltaNetOp) on the threads of a pool. Each value head of each sequence has its
// own state, and the columns of a head are independent, so threads share sequences, heads and
// blocks of columns. The rows of a sequence are computed one after the other, in prompts as in
// decodes. So bits do not depend on chunks, other sequences or threads.
//
// Threads: all threads of the pool call Run with their own number; it has barriers inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/backend/cpu/delta/state_store.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "shard/model/program.h"

namespace penstock::shard::cpu {

class DeltaStage {
 public:
  // All outlive it.
  DeltaStage(const DeltaNetOp& op, const Kernels& kernels, const WeightStore& weights,
             const StateStore& states, StepBuffers& buffers, WorkerPool& pool);

  // Computes the segments of the states' present step, which have `rows` rows in all.
  void Run(std::size_t rows, std::size_t thread);

 private:
  // The convolution of a key head and its value heads in one row; then what the delta rule needs of
  // them: unit vectors, and beta and decay in place of b and a.
  void Mix(const StateSegment& segment, std::size_t row, std::size_t key_head);
  void Convolve(const StateSegment& segment, std::size_t row, std::size_t first, std::size_t count);
  void SetGates(std::size_t row, std::size_t head);
  // The delta rule for all rows of a segment. The results replace the values.
  void Advance(const StateSegment& segment, std::size_t head, std::size_t block);
  void NormHead(std::size_t row, std::size_t head);
  // Keeps the newest inputs of the convolution for the next step, in each state of the segment.
  void KeepInputs(const StateSegment& segment);
  // To the state at `place`, which is that after `rows` rows.
  void KeepInputs(const StateSegment& segment, std::size_t rows, std::size_t place);
  // Input `index` of the segment, counted from the first that the state holds.
  const float* Input(const StateSegment& segment, std::size_t index) const;

  const DeltaNetOp& op_;
  const Kernels& kernels_;
  const StateStore& states_;
  StepBuffers& buffers_;
  WorkerPool& pool_;
  std::vector<float> convolution_;  // [taps][channels]
  const float* const decay_;
  const float* const decay_bias_;
  const float* const norm_;
  std::vector<float> zeros_;  // [channels]: inputs before the text
};

}  // namespace penstock::shard::cpu
