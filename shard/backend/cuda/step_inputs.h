// The inputs of a step on the device: all that differs from step to step. Their addresses never
// change, so that recorded graphs can read them. Two staging buffers on the host serve alternate
// steps, so that one step can be prepared before the copies of the last one are done.
//
// Threading: the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cuda/gpu.h"
#include "shard/backend/cuda/graph_buckets.h"
#include "shard/backend/cuda/paged_attention.h"

namespace penstock::shard::cuda {

// The largest step that the inputs must hold.
struct InputLimits {
  std::uint32_t rows = 0;
  std::uint32_t blocks = 0;  // entries of all block tables together
  std::uint32_t items = 0;   // of attention, for one window, padding included
  std::uint32_t windows = 1;
};

// Addresses on the device, the same in every step, and counts.
struct DeviceInputs {
  const std::int32_t* tokens = nullptr;
  const std::int32_t* newest = nullptr;  // as EmbedArgs
  const std::int32_t* positions = nullptr;
  const std::int64_t* cache_rows = nullptr;
  const std::int32_t* logit_rows = nullptr;
  // By window: the work, the blocks, their size and the shape. The rest is that of the layer.
  std::vector<AttentionArgs> attention;
  std::uint32_t rows = 0;  // padding included
  std::uint32_t logit_count = 0;
};

class StepInputs {
 public:
  // `windows`: the distinct windows of the program's attention, 0 = all.
  static absl::StatusOr<StepInputs> Create(Gpu& gpu, const InputLimits& limits,
                                           const HeadShape& shape, AttentionKind kind,
                                           std::uint32_t block_size,
                                           std::vector<std::uint32_t> windows);

  // Writes the batch to a staging buffer. `newest` is as in DeviceSampler::BeginStep; empty: -1 for
  // all rows. is_decode() is then true if every segment has one row.
  void Fill(const RaggedBatch& batch, std::span<const std::int32_t> newest = {});
  bool is_decode() const { return is_decode_; }
  std::uint32_t rows() const { return rows_; }
  std::uint32_t MostItems() const;

  // Pads to the shape with empty items and with rows. These rows write only `scratch_block` and
  // attend to no position.
  void PadTo(const GraphShape& shape, std::uint32_t scratch_block);

  // Enqueues the copies of the inputs that the step uses.
  absl::Status Upload();
  DeviceInputs OnDevice() const;

 private:
  struct Offsets {
    std::size_t tokens, newest, positions, cache_rows, logit_rows, blocks, end;
    struct Window {
      std::size_t tiles, items, rows, chunks;
    };
    std::vector<Window> windows;
  };
  static Offsets Layout(const InputLimits& limits);
  template <class T>
  T* Host(std::size_t offset) const {
    return reinterpret_cast<T*>(staging_[turn_].At(offset));
  }
  void AddSegment(const RaggedSegment& segment);
  absl::Status Send(std::size_t offset, std::size_t bytes);
  absl::Status SendWindow(std::size_t window);

  Gpu* gpu_ = nullptr;
  InputLimits limits_;
  HeadShape shape_;
  AttentionKind kind_ = AttentionKind::kFloat;
  std::uint32_t block_size_ = 16;
  std::vector<std::uint32_t> windows_;
  Offsets offsets_;
  std::array<GpuMemory, 2> staging_;  // pinned
  std::size_t turn_ = 0;
  GpuMemory device_;

  // Of the present step.
  std::vector<AttentionWork> work_;
  std::vector<std::uint32_t> tables_;  // by segment
  std::uint32_t rows_ = 0;
  std::uint32_t logit_rows_ = 0;
  std::uint32_t block_entries_ = 0;
  bool is_decode_ = false;
};

}  // namespace penstock::shard::cuda
