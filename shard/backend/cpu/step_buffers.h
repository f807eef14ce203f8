// Scratch of the largest step: the Program's buffers and the scratch of each thread. Prepare makes
// one allocation for all; steps allocate nothing.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/model/program.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {

// Up to this many rows every thread computes a norm for itself, which takes less time than a
// barrier after sharing the rows.
inline constexpr std::size_t kPrivateRows = 4;

// Whether the buffer holds what GEMMs read, in Kernels::activation. Others hold float32.
bool HoldsActivations(Buffer buffer);

struct BufferView {
  std::byte* data = nullptr;
  std::size_t stride = 0;  // elements
  std::size_t element = 4;
  std::byte* Row(std::size_t row) const { return data + row * stride * element; }
  float* Floats(std::size_t row) const { return reinterpret_cast<float*>(Row(row)); }
};

// Rows of one head that a HeadLinearOp multiplies together.
inline constexpr std::size_t kHeadRows = 96;

struct HeadScratch {
  BufferView in;         // activations [kHeadRows, in_dim]
  BufferView out;        // float32 [kHeadRows, out_dim]
  IntegerRows integers;  // kHeadRows; only if the format quantises its input
};

struct ThreadScratch {
  float* gemm = nullptr;
  float* row = nullptr;  // as wide as the hidden state
  BufferView normed;     // kPrivateRows
  IntegerRows integers;  // kPrivateRows; only if the format quantises its input
  AttentionScratch attention;
  AttentionState partition;
  AttentionState total;
  HeadScratch head;  // only if the program has a HeadLinearOp
  // What adapters add to a product, by row of a step (adapters/adapted_rows.h).
  float* added_sums = nullptr;
  const float** added = nullptr;
};

class StepBuffers {
 public:
  StepBuffers() = default;
  // If `format` quantises its input, there are buffers for quantised rows. All pages are
  // pre-faulted. With several NUMA nodes only the scratch of each thread is, on the thread's node.
  static absl::StatusOr<StepBuffers> Create(const Program& program, const Kernels& kernels,
                                            const FormatKernels& format,
                                            const BackendLimits& limits, WorkerPool& pool);

  const BufferView& View(Buffer buffer) const { return views_[static_cast<std::size_t>(buffer)]; }
  ThreadScratch& Thread(std::size_t thread) { return threads_[thread]; }
  // The quantised input of a GEMM, all rows of a step.
  const IntegerRows& integers() const { return integers_; }
  // Products with the first matrices of adapters: [rows, kMostTargetRanks].
  float* low() const { return low_; }
  // The result of a partition of a divided attention item.
  AttentionState Slot(std::size_t slot) const;
  std::size_t slots() const { return slots_; }
  // float32 [max_logit_rows, vocabulary].
  float* logits() const { return logits_; }
  // float32 [world, max_logit_rows, share]; null with world 1.
  float* gathered() const { return gathered_; }
  std::uint64_t MemoryBytes() const { return region_.bytes(); }

 private:
  struct Sizes;
  class Carver;
  void Carve(const Sizes& sizes, Carver& carver);
  static void CarveLatent(const Sizes& sizes, Carver& carver, ThreadScratch& thread);
  void Touch(WorkerPool& pool);

  MemoryRegion region_;
  std::array<BufferView, kBufferCount> views_;
  std::vector<ThreadScratch> threads_;
  std::vector<std::size_t> own_;  // where the memory of each thread begins, and the last one's ends
  IntegerRows integers_;
  float* low_ = nullptr;
  float* slot_memory_ = nullptr;
  std::size_t slots_ = 0;
  std::size_t tile_rows_ = 0;
  std::size_t value_stride_ = 0;
  float* logits_ = nullptr;
  float* gathered_ = nullptr;
};

}  // namespace penstock::shard::cpu
