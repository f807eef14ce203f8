// The inputs of a step on the device: all that differs from step to step. They are contiguous, so
// one copy sends them, or two where a KV group has block tables of its own. Their addresses
// depend only on the numbers of rows, logit rows and items, so that a recorded graph finds them.
// Two staging buffers on the host serve alternate steps, so that one step can be prepared before
// the copy of the last one is done.
//
// Threading: the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cuda/gpu.h"
#include "shard/backend/cuda/graph_buckets.h"
#include "shard/backend/cuda/paged_attention.h"
#include "shard/model/rope_table.h"

namespace penstock::shard::cuda {

// The layers with one window and chunk. The backend has no layers that share a cache, so all of
// them are in one KV group.
struct WindowLayers {
  std::uint32_t window = 0;  // 0 = all
  std::uint32_t kv_group = 0;
  std::uint32_t chunk = 0;  // 0 = all
  friend auto operator<=>(const WindowLayers&, const WindowLayers&) = default;
};

// The largest step that the inputs must hold.
struct InputLimits {
  std::uint32_t rows = 0;
  std::uint32_t blocks = 0;  // entries of all block tables of a KV group together
  std::uint32_t items = 0;   // of attention, for one window, padding included
  std::uint32_t windows = 1;
};

// Addresses on the device, the same for every step of a shape, and counts.
struct DeviceInputs {
  const std::int32_t* tokens = nullptr;
  const std::int32_t* newest = nullptr;  // as EmbedArgs
  const std::int32_t* positions = nullptr;
  std::array<const std::int64_t*, kMostKvGroups> cache_rows{};
  const std::int32_t* logit_rows = nullptr;
  // By window: the work, the blocks, their size and the shape. The rest is that of the layer.
  std::vector<AttentionArgs> attention;
  // By rope: [rows, dim / 2] where the angles depend on the length of the text, else null.
  struct Angles {
    const float* cos = nullptr;
    const float* sin = nullptr;
  };
  std::vector<Angles> angles;
  std::uint32_t rows = 0;  // padding included
  std::uint32_t logit_count = 0;
};

class StepInputs {
 public:
  // `windows`: the distinct windows of the program's attention. `kv_window`: that of KV group 1.
  // `ropes`: those of the program.
  static absl::StatusOr<StepInputs> Create(Gpu& gpu, const InputLimits& limits,
                                           const HeadShape& shape, AttentionKind kind,
                                           std::uint32_t block_size,
                                           std::vector<WindowLayers> windows,
                                           std::uint32_t kv_window,
                                           const std::vector<RopeSpec>& ropes);

  // A block of each KV group that no sequence owns. Padding rows write it. Kernels look at whole
  // tiles of positions; where a tile begins before the window they find this block.
  void SetScratchBlocks(const KvBlocks& blocks) { scratch_ = blocks; }

  // Takes the batch in. `newest` is as in DeviceSampler::BeginStep; empty: -1 for
  // all rows. is_decode() is then true if every segment has one row.
  void Fill(const RaggedBatch& batch, std::span<const std::int32_t> newest = {});
  bool is_decode() const { return is_decode_; }
  std::uint32_t rows() const { return static_cast<std::uint32_t>(tokens_.size()); }
  std::uint32_t MostItems() const;

  // Pads to the shape with empty items and with rows. These rows write only the scratch blocks and
  // attend to no position.
  void PadTo(const GraphShape& shape);

  // Enqueues the copy of the inputs. OnDevice tells afterwards where they are.
  absl::Status Upload();
  DeviceInputs OnDevice() const;

 private:
  struct Offsets {
    std::size_t tokens, newest, positions, logit_rows;
    std::array<std::size_t, kMostKvGroups> cache_rows, blocks;
    struct Window {
      std::size_t tiles, items, rows, chunks;
    };
    std::vector<Window> windows;
    struct Angles {
      std::size_t cos, sin;
    };
    std::vector<Angles> angles;  // by rope, where they depend on the length
  };
  static std::size_t MostBytes(const InputLimits& limits, const std::vector<RopeSpec>& ropes);
  std::uint32_t kv_groups() const { return kv_window_ > 0 ? 2 : 1; }
  void AddPositions(const RaggedSegment& segment);
  void AddAngles(const RaggedBatch& batch);
  void AddTable(const RaggedSegment& segment, std::uint32_t group);
  // Copies all but the tables of KV group 1 to the staging buffer. Gives the bytes.
  std::size_t Pack();

  Gpu* gpu_ = nullptr;
  InputLimits limits_;
  HeadShape shape_;
  AttentionKind kind_ = AttentionKind::kFloat;
  std::uint32_t block_size_ = 16;
  std::vector<WindowLayers> windows_;
  std::uint32_t kv_window_ = 0;
  std::vector<RopeSpec> ropes_;
  KvBlocks scratch_;
  std::size_t window_tables_ = 0;     // where the tables of KV group 1 begin: after all others
  std::array<GpuMemory, 2> staging_;  // pinned
  std::size_t turn_ = 0;
  GpuMemory device_;

  // For the present step.
  std::vector<std::int32_t> tokens_, newest_, positions_, logit_rows_;
  std::array<std::vector<std::int64_t>, kMostKvGroups> cache_rows_;
  std::array<std::vector<std::uint32_t>, kMostKvGroups> blocks_;
  std::array<std::vector<std::uint32_t>, kMostKvGroups> tables_;  // by segment
  std::vector<RopeTable> angles_;                                 // by rope
  std::vector<AttentionWork> work_;
  Offsets offsets_;
  bool is_decode_ = false;
};

}  // namespace penstock::shard::cuda
