// K, V and the hidden-state plane, if there is one, as ATen tensors of positions, with the blocks
// of their KV group. First come the blocks of the paged layout, then spare blocks for what
// candidates write until one is chosen, then the cells of padded KV rows (docs/decisions/0014), if
// any.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/reference/aten.h"
#include "shard/backend/reference/batch_inputs.h"
#include "shard/cache/padded/cell_layout.h"
#include "shard/cache/paged/paged_layout.h"

namespace penstock::shard {

struct KvSizes {
  KvBlocks blocks;
  std::uint32_t spare = 0;  // blocks for candidates
  std::uint32_t cells = 0;
};

class KvStore {
 public:
  KvStore() = default;
  KvStore(const PagedLayout& layout, const KvSizes& sizes, at::Device device);

  const KvBlocks& blocks() const { return sizes_.blocks; }
  std::uint32_t GroupOf(std::uint32_t cache) const { return layout_.caches[cache].kv_group; }
  std::uint64_t Bytes() const;
  bool has_hidden() const { return layout_.hidden > 0; }

  // k: [rows, kv_heads * key_dim] in the cache's dtype, v as wide as values are; slots: int64
  // [rows]. v is not read if values lie in keys.
  void Write(std::uint32_t cache, const at::Tensor& slots, const at::Tensor& k,
             const at::Tensor& v);

  // float32 [positions, kv_heads, dim] for positions [first, first + count) of a sequence.
  at::Tensor Keys(std::uint32_t cache, const SegmentInputs& segment, std::int64_t first,
                  std::int64_t count) const {
    return KeyHeads(cache, Gather(keys_[cache], GroupOf(cache), segment, first, count));
  }
  at::Tensor Values(std::uint32_t cache, const SegmentInputs& segment, std::int64_t first,
                    std::int64_t count) const {
    return ValueHeads(cache, Gather(ValuePlane(cache), GroupOf(cache), segment, first, count));
  }

  // The same for single positions: float32 [slots, kv_heads, dim].
  at::Tensor KeysAt(std::uint32_t cache, const at::Tensor& slots) const;
  at::Tensor ValuesAt(std::uint32_t cache, const at::Tensor& slots) const;

  // Hidden-state plane. rows: float32 [rows, hidden]; slots: int64 [rows].
  void WriteHidden(const at::Tensor& slots, const at::Tensor& rows);
  // float32 [positions, hidden] for the first `count` positions of a sequence.
  at::Tensor Hidden(const SegmentInputs& segment, std::int64_t count) const {
    return Gather(hidden_, 0, segment, 0, count);
  }

  // A part as a dense tensor in the cache's dtype: [width, rows, kv_heads, dim].
  at::Tensor PartKeys(std::uint32_t cache, std::uint32_t part) const {
    return KeyHeads(cache, ViewOfPart(keys_[cache], cells_.parts()[part]));
  }
  at::Tensor PartValues(std::uint32_t cache, std::uint32_t part) const {
    return ValueHeads(cache, ViewOfPart(ValuePlane(cache), cells_.parts()[part]));
  }

  const CellLayout& cells() const { return cells_; }
  // See Backend::ArrangeCells.
  absl::StatusOr<CellsArranged> Arrange(std::span<const CellPart> parts);

  void CopyBlock(std::uint32_t kv_group, std::int64_t src, std::int64_t dst);
  void CopyPosition(std::uint32_t kv_group, std::int64_t src, std::int64_t dst);

  // The index of a position of a segment's sequence in the tensors of a KV group.
  std::int64_t SlotOf(const RaggedSegment& segment, std::uint32_t kv_group,
                      std::uint32_t position) const;

 private:
  // [..., kv_heads * dim] -> [..., kv_heads, dim]
  at::Tensor KeyHeads(std::uint32_t cache, const at::Tensor& rows) const {
    const CacheShape& shape = layout_.caches[cache];
    return rows.unflatten(-1, {shape.kv_heads, shape.key_dim});
  }
  at::Tensor ValueHeads(std::uint32_t cache, const at::Tensor& rows) const {
    const CacheShape& shape = layout_.caches[cache];
    if (shape.values_in_keys) return KeyHeads(cache, rows).narrow(-1, 0, shape.value_dim);
    return rows.unflatten(-1, {shape.kv_heads, shape.value_dim});
  }
  const at::Tensor& ValuePlane(std::uint32_t cache) const {
    return layout_.caches[cache].values_in_keys ? keys_[cache] : values_[cache];
  }
  // All tensors of a KV group.
  std::vector<at::Tensor> Planes(std::uint32_t kv_group) const;
  // float32 [count, width]
  at::Tensor Gather(const at::Tensor& plane, std::uint32_t kv_group, const SegmentInputs& segment,
                    std::int64_t first, std::int64_t count) const;
  at::Tensor ViewOfPart(const at::Tensor& plane, const CellLayout::Part& part) const;
  void Move(const CellLayout::Moves& moves);

  PagedLayout layout_;
  KvSizes sizes_;
  at::Device device_ = at::kCPU;
  CellLayout cells_;
  // By cache: [positions, kv_heads * dim].
  std::vector<at::Tensor> keys_;
  std::vector<at::Tensor> values_;  // no columns if they lie in keys
  at::Tensor hidden_;               // [positions, hidden]; undefined without a plane
  at::Tensor moving_;               // scratch: the cells of one plane that Move copies
};

}  // namespace penstock::shard
