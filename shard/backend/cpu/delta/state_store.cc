#include "shard/backend/cpu/delta/state_store.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/status.h"
#include "shard/backend/cpu/cache/prefault.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/work_split.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kLineFloats = 16;

std::size_t WholeLines(std::size_t floats) {
  return (floats + kLineFloats - 1) / kLineFloats * kLineFloats;
}

}  // namespace

std::size_t StateStore::BlocksOf(const StateShape& shape) {
  return (shape.value_dim + kDeltaColumns - 1) / kDeltaColumns;
}

absl::Status StateStore::Allocate(const std::vector<StateShape>& shapes, std::uint32_t slots,
                                  WorkerPool& pool, std::size_t prefaulted) {
  region_ = MemoryRegion();
  layers_.clear();
  slot_floats_ = 0;
  if (shapes.empty() || slots == 0) return absl::OkStatus();
  for (const StateShape& shape : shapes) {
    Layer layer;
    layer.inputs = slot_floats_;
    layer.matrices = layer.inputs + WholeLines(std::size_t{shape.inputs} * shape.channels);
    layer.blocks = BlocksOf(shape);
    layer.block_floats = shape.key_dim * kDeltaColumns;
    slot_floats_ = layer.matrices + shape.heads * layer.blocks * layer.block_floats;
    layers_.push_back(layer);
  }
  auto region = MemoryRegion::Allocate(slots * slot_floats_ * sizeof(float));
  if (!region.ok()) return WithContext(region.status(), "recurrent states");
  region_ = std::move(*region);
  const std::span<std::byte> first(region_.data(),
                                   std::min<std::size_t>(region_.bytes(), prefaulted));
  pool.Run([&](std::uint32_t thread) {
    const Share share = EvenShare(PrefaultUnits(first.size()), pool.threads(), thread);
    for (std::size_t i = 0; i < share.count; ++i) PrefaultUnit(first, share.first + i);
  });
  return absl::OkStatus();
}

}  // namespace penstock::shard::cpu
