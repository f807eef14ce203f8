#include "shard/backend/reference/kv_store.h"

#include "common/status.h"
#include "shard/cache/padded/pool_split.h"

namespace penstock::shard {

KvStore::KvStore(const PagedLayout& layout, const KvSizes& sizes, at::Device device)
    : layout_(layout),
      sizes_(sizes),
      device_(device),
      cells_(sizes.cells, (sizes.blocks[0] + sizes.spare) * layout.block_size, layout.block_size) {
  const auto positions = [&](std::uint32_t group) {
    return (std::int64_t{sizes.blocks[group]} + sizes.spare) * layout.block_size + sizes.cells;
  };
  const auto options = at::TensorOptions().dtype(ToScalarType(layout.dtype)).device(device);
  for (const CacheShape& cache : layout.caches) {
    const std::int64_t heads = cache.kv_heads;
    const std::int64_t value_dim = cache.values_in_keys ? 0 : cache.value_dim;
    keys_.push_back(at::zeros({positions(cache.kv_group), heads * cache.key_dim}, options));
    values_.push_back(at::zeros({positions(cache.kv_group), heads * value_dim}, options));
  }
  if (has_hidden()) hidden_ = at::zeros({positions(0), layout.hidden}, options);
  if (sizes.cells == 0) return;
  const auto each = static_cast<std::int64_t>(CellScratchBytes(layout) / DTypeBytes(layout.dtype));
  moving_ = at::zeros({sizes.cells * each}, options);
}

std::vector<at::Tensor> KvStore::Planes(std::uint32_t kv_group) const {
  std::vector<at::Tensor> planes;
  for (std::uint32_t cache = 0; cache < keys_.size(); ++cache) {
    if (GroupOf(cache) != kv_group) continue;
    planes.push_back(keys_[cache]);
    if (values_[cache].size(1) > 0) planes.push_back(values_[cache]);
  }
  if (has_hidden() && kv_group == 0) planes.push_back(hidden_);
  return planes;
}

std::uint64_t KvStore::Bytes() const {
  std::uint64_t bytes = moving_.defined() ? moving_.nbytes() : 0;
  for (std::uint32_t group = 0; group < layout_.GroupCount(); ++group) {
    for (const at::Tensor& plane : Planes(group)) bytes += plane.nbytes();
  }
  return bytes;
}

void KvStore::Write(std::uint32_t cache, const at::Tensor& slots, const at::Tensor& k,
                    const at::Tensor& v) {
  keys_[cache].index_copy_(0, slots, k);
  if (!layout_.caches[cache].values_in_keys) values_[cache].index_copy_(0, slots, v);
}

at::Tensor KvStore::KeysAt(std::uint32_t cache, const at::Tensor& slots) const {
  return KeyHeads(cache, at::index_select(keys_[cache], 0, slots).to(at::kFloat));
}

at::Tensor KvStore::ValuesAt(std::uint32_t cache, const at::Tensor& slots) const {
  return ValueHeads(cache, at::index_select(ValuePlane(cache), 0, slots).to(at::kFloat));
}

void KvStore::WriteHidden(const at::Tensor& slots, const at::Tensor& rows) {
  hidden_.index_copy_(0, slots, rows.to(hidden_.scalar_type()));
}

std::int64_t KvStore::SlotOf(const RaggedSegment& segment, std::uint32_t kv_group,
                             std::uint32_t position) const {
  if (segment.row.has_value()) return cells_.Cell(*segment.row, position);
  return InBlocks(segment.Table(kv_group), position, layout_.block_size);
}

at::Tensor KvStore::Gather(const at::Tensor& plane, std::uint32_t kv_group,
                           const SegmentInputs& segment, std::int64_t first,
                           std::int64_t count) const {
  if (segment.row.has_value()) {
    const CellLayout::Place place = cells_.Find(*segment.row);
    return ViewOfPart(plane, cells_.parts()[place.part])
        .select(1, place.row)
        .narrow(0, first, count)
        .to(at::kFloat)
        .contiguous();
  }
  const std::int64_t size = layout_.block_size;
  const std::int64_t width = plane.size(1);
  const std::int64_t first_block = first / size;
  const std::int64_t last_block = (first + count - 1) / size;
  const at::Tensor ids =
      segment.groups[kv_group].blocks.narrow(0, first_block, last_block - first_block + 1);
  const std::int64_t all = sizes_.blocks[kv_group];
  const at::Tensor blocks = plane.narrow(0, 0, all * size).view({all, size * width});
  // Narrowed before use: positions after the sequence's end in its last block hold other values.
  return at::index_select(blocks, 0, ids)
      .view({-1, width})
      .narrow(0, first - first_block * size, count)
      .to(at::kFloat);
}

at::Tensor KvStore::ViewOfPart(const at::Tensor& plane, const CellLayout::Part& part) const {
  const auto rows = static_cast<std::int64_t>(part.rows.size());
  return plane.narrow(0, part.base, part.Cells()).view({part.width, rows, plane.size(1)});
}

absl::StatusOr<CellsArranged> KvStore::Arrange(std::span<const CellPart> parts) {
  PENSTOCK_ASSIGN_OR_RETURN(const CellsArranged arranged, cells_.Arrange(parts));
  if (arranged.copied > 0) Move(cells_.moves());
  return arranged;
}

void KvStore::Move(const CellLayout::Moves& moves) {
  const auto count = static_cast<std::int64_t>(moves.from.size());
  const at::Tensor sources = Indexes(moves.from, device_);
  const at::Tensor targets = Indexes(moves.to, device_);
  for (at::Tensor& plane : Planes(0)) {
    const std::int64_t width = plane.size(1);
    at::Tensor moving = moving_.narrow(0, 0, count * width).view({count, width});
    at::index_select_out(moving, plane, 0, sources);
    plane.index_copy_(0, targets, moving);
  }
}

void KvStore::CopyBlock(std::uint32_t kv_group, std::int64_t src, std::int64_t dst) {
  const std::int64_t size = layout_.block_size;
  for (at::Tensor& plane : Planes(kv_group)) {
    plane.narrow(0, dst * size, size).copy_(plane.narrow(0, src * size, size));
  }
}

void KvStore::CopyPosition(std::uint32_t kv_group, std::int64_t src, std::int64_t dst) {
  for (at::Tensor& plane : Planes(kv_group)) plane.select(0, dst).copy_(plane.select(0, src));
}

}  // namespace penstock::shard
