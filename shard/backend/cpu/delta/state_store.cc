#include "shard/backend/cpu/delta/state_store.h"

#include <algorithm>
#include <numeric>
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

absl::Status StateStore::Allocate(const std::vector<StateShape>& shapes, const StateCounts& counts,
                                  WorkerPool& pool, std::size_t prefaulted) {
  region_ = MemoryRegion();
  layers_.clear();
  place_floats_ = 0;
  segments_.clear();
  counts_ = shapes.empty() ? StateCounts{} : counts;
  slots_.resize(counts_.slots);
  drafts_.resize(counts_.drafts);
  std::iota(slots_.begin(), slots_.end(), 0);
  std::iota(drafts_.begin(), drafts_.end(), counts_.slots);
  if (counts_.All() == 0) return absl::OkStatus();
  for (const StateShape& shape : shapes) {
    Layer layer;
    layer.inputs = place_floats_;
    layer.matrices = layer.inputs + WholeLines(std::size_t{shape.inputs} * shape.channels);
    layer.blocks = BlocksOf(shape);
    layer.block_floats = shape.key_dim * kDeltaColumns;
    place_floats_ = layer.matrices + shape.heads * layer.blocks * layer.block_floats;
    layers_.push_back(layer);
  }
  auto region = MemoryRegion::Allocate(counts_.All() * place_floats_ * sizeof(float));
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

void StateStore::BeginStep(std::span<const RaggedSegment> segments) {
  segments_.clear();
  if (layers_.empty()) return;
  std::uint32_t drafts = 0;
  for (const RaggedSegment& from : segments) {
    StateSegment& segment = segments_.emplace_back();
    segment.first_row = from.query_start;
    segment.rows = from.query_count - from.drafts;
    segment.drafts = from.drafts;
    segment.begins = from.context_length == 0;
    segment.slot = from.state;
    segment.place = slots_[from.state.value()];
    segment.first_draft = drafts;
    drafts += from.drafts;
  }
}

void StateStore::Keep(const DraftsKept& kept) {
  if (kept.rows == 0) return;
  const StateSegment& segment = segments_[kept.segment];
  std::swap(slots_[segment.slot.value()], drafts_[segment.first_draft + kept.rows - 1]);
}

void StateStore::Save(const StateCopy& copy) {
  Copy(slots_[copy.slot.value()], Place(copy.snapshot));
}

void StateStore::Restore(const StateCopy& copy) {
  Copy(Place(copy.snapshot), slots_[copy.slot.value()]);
}

void StateStore::Copy(std::size_t from, std::size_t to) {
  std::copy_n(Floats() + from * place_floats_, place_floats_, Floats() + to * place_floats_);
}

}  // namespace penstock::shard::cpu
