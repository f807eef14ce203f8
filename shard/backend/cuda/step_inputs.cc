#include "shard/backend/cuda/step_inputs.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/status.h"
#include "shard/backend/row_angles.h"

namespace penstock::shard::cuda {
namespace {

constexpr std::size_t kAlignment = 16;

template <class T>
std::size_t Place(std::size_t& end, std::size_t count) {
  const std::size_t begin = end;
  end = (end + count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

}  // namespace

StepInputs::Offsets StepInputs::Layout(const InputLimits& limits,
                                       const std::vector<RopeSpec>& ropes) {
  Offsets at{};
  at.tokens = Place<std::int32_t>(at.end, limits.rows);
  at.newest = Place<std::int32_t>(at.end, limits.rows);
  at.positions = Place<std::int32_t>(at.end, limits.rows);
  at.logit_rows = Place<std::int32_t>(at.end, limits.rows);
  for (std::uint32_t group = 0; group < kMostKvGroups; ++group) {
    at.cache_rows[group] = Place<std::int64_t>(at.end, limits.rows);
    at.blocks[group] = Place<std::uint32_t>(at.end, limits.blocks);
  }
  at.windows.resize(limits.windows);
  for (Offsets::Window& window : at.windows) {
    window.tiles = Place<AttentionTile>(at.end, limits.rows);
    window.rows = Place<AttentionRow>(at.end, limits.rows);
    window.chunks = Place<AttentionTile>(at.end, limits.rows);
    window.items = Place<AttentionItem>(at.end, limits.items);
  }
  for (const RopeSpec& rope : ropes) {
    const std::size_t count =
        rope.DependsOnLength() ? std::size_t{limits.rows} * (rope.dim / 2) : 0;
    Offsets::Angles& angles = at.angles.emplace_back();
    angles.cos = Place<float>(at.end, count);
    angles.sin = Place<float>(at.end, count);
  }
  return at;
}

absl::StatusOr<StepInputs> StepInputs::Create(Gpu& gpu, const InputLimits& limits,
                                              const HeadShape& shape, AttentionKind kind,
                                              std::uint32_t block_size,
                                              std::vector<WindowLayers> windows,
                                              std::uint32_t kv_window,
                                              const std::vector<RopeSpec>& ropes) {
  StepInputs inputs;
  inputs.gpu_ = &gpu;
  inputs.limits_ = limits;
  inputs.limits_.windows = static_cast<std::uint32_t>(windows.size());
  inputs.shape_ = shape;
  inputs.kind_ = kind;
  inputs.block_size_ = block_size;
  inputs.offsets_ = Layout(inputs.limits_, ropes);
  inputs.ropes_ = ropes;
  for (const RopeSpec& rope : ropes) {
    const std::size_t count =
        rope.DependsOnLength() ? std::size_t{limits.rows} * (rope.dim / 2) : 0;
    inputs.angles_.push_back({std::vector<float>(count), std::vector<float>(count)});
  }
  inputs.work_.resize(windows.size());
  inputs.windows_ = std::move(windows);
  inputs.kv_window_ = kv_window;
  for (GpuMemory& staging : inputs.staging_) {
    PENSTOCK_ASSIGN_OR_RETURN(staging, GpuMemory::Pinned(gpu, inputs.offsets_.end));
  }
  PENSTOCK_ASSIGN_OR_RETURN(inputs.device_, GpuMemory::OnDevice(gpu, inputs.offsets_.end));
  return inputs;
}

void StepInputs::AddPositions(const RaggedSegment& segment) {
  for (std::uint32_t i = 0; i < segment.query_count; ++i) {
    Host<std::int32_t>(offsets_.positions)[segment.query_start + i] =
        static_cast<std::int32_t>(segment.context_length + i);
  }
}

void StepInputs::AddAngles(const RaggedBatch& batch) {
  for (std::size_t i = 0; i < ropes_.size(); ++i) {
    if (ropes_[i].DependsOnLength()) SetRowAngles(ropes_[i], batch, angles_[i]);
  }
}

void StepInputs::AddTable(const RaggedSegment& segment, std::uint32_t group) {
  const std::span<const BlockId> table = segment.Table(group);
  for (std::uint32_t i = 0; i < segment.query_count; ++i) {
    const std::uint32_t position = segment.context_length + i;
    const std::uint64_t block = table[position / block_size_].value();
    Host<std::int64_t>(offsets_.cache_rows[group])[segment.query_start + i] =
        static_cast<std::int64_t>(block * block_size_ + position % block_size_);
  }
  tables_[group].push_back(block_entries_[group]);
  const std::uint32_t end = segment.context_length + segment.query_count;
  const std::uint32_t needed = (end + block_size_ - 1) / block_size_;
  const std::uint64_t visible =
      FirstVisible(group == 0 ? 0 : kv_window_, segment.context_length) / block_size_;
  for (std::uint32_t i = 0; i < needed; ++i) {
    Host<std::uint32_t>(offsets_.blocks[group])[block_entries_[group]++] =
        i < visible ? scratch_[group] : table[i].value();
  }
}

void StepInputs::Fill(const RaggedBatch& batch, std::span<const std::int32_t> newest) {
  turn_ = 1 - turn_;
  rows_ = static_cast<std::uint32_t>(batch.tokens.size());
  block_entries_ = {};
  for (auto& tables : tables_) tables.clear();
  std::memcpy(Host<void>(offsets_.tokens), batch.tokens.data(), batch.tokens.size_bytes());
  std::fill_n(Host<std::int32_t>(offsets_.newest), rows_, -1);
  std::copy(newest.begin(), newest.end(), Host<std::int32_t>(offsets_.newest));
  std::memcpy(Host<void>(offsets_.logit_rows), batch.logit_rows.data(),
              batch.logit_rows.size_bytes());
  logit_rows_ = static_cast<std::uint32_t>(batch.logit_rows.size());
  is_decode_ = true;
  for (const RaggedSegment& segment : batch.segments) {
    is_decode_ = is_decode_ && segment.query_count == 1;
    AddPositions(segment);
    for (std::uint32_t group = 0; group < kv_groups(); ++group) AddTable(segment, group);
  }
  AddAngles(batch);
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    work_[i] = PlanAttention(batch.segments, tables_[windows_[i].kv_group], shape_,
                             windows_[i].window, kind_, windows_[i].chunk);
  }
}

std::uint32_t StepInputs::MostItems() const {
  std::size_t most = 0;
  for (const AttentionWork& work : work_) most = std::max(most, work.items.size());
  return static_cast<std::uint32_t>(most);
}

void StepInputs::PadTo(const GraphShape& shape) {
  for (; rows_ < shape.rows; ++rows_) {
    Host<std::int32_t>(offsets_.tokens)[rows_] = 0;
    Host<std::int32_t>(offsets_.newest)[rows_] = -1;
    Host<std::int32_t>(offsets_.positions)[rows_] = 0;
    for (std::uint32_t group = 0; group < kv_groups(); ++group) {
      Host<std::int64_t>(offsets_.cache_rows[group])[rows_] =
          std::int64_t{scratch_[group]} * block_size_;
    }
    for (AttentionWork& work : work_) {
      work.rows.push_back({rows_, static_cast<std::uint32_t>(work.tiles.size())});
      work.tiles.push_back({.first_row = rows_, .rows = 1});
    }
  }
  while (logit_rows_ < shape.rows) Host<std::int32_t>(offsets_.logit_rows)[logit_rows_++] = 0;
  for (AttentionWork& work : work_) work.items.resize(shape.items);
}

absl::Status StepInputs::Send(std::size_t offset, std::size_t bytes) {
  return gpu_->Upload(device_.At(offset), Host<void>(offset), bytes);
}

absl::Status StepInputs::SendWindow(std::size_t window) {
  const AttentionWork& work = work_[window];
  const Offsets::Window& at = offsets_.windows[window];
  const auto send = [this](std::size_t offset, const auto& values) {
    std::memcpy(Host<void>(offset), values.data(), values.size() * sizeof values[0]);
    return values.empty() ? absl::OkStatus() : Send(offset, values.size() * sizeof values[0]);
  };
  PENSTOCK_RETURN_IF_ERROR(send(at.tiles, work.tiles));
  PENSTOCK_RETURN_IF_ERROR(send(at.items, work.items));
  PENSTOCK_RETURN_IF_ERROR(send(at.rows, work.rows));
  return send(at.chunks, work.chunks);
}

// Rows of padding have those of an earlier step.
absl::Status StepInputs::SendAngles(std::size_t rope) {
  const std::size_t bytes = std::size_t{rows_} * (ropes_[rope].dim / 2) * sizeof(float);
  const Offsets::Angles& at = offsets_.angles[rope];
  std::memcpy(Host<void>(at.cos), angles_[rope].cos.data(), bytes);
  std::memcpy(Host<void>(at.sin), angles_[rope].sin.data(), bytes);
  PENSTOCK_RETURN_IF_ERROR(Send(at.cos, bytes));
  return Send(at.sin, bytes);
}

absl::Status StepInputs::Upload() {
  PENSTOCK_RETURN_IF_ERROR(Send(offsets_.tokens, rows_ * sizeof(std::int32_t)));
  PENSTOCK_RETURN_IF_ERROR(Send(offsets_.newest, rows_ * sizeof(std::int32_t)));
  PENSTOCK_RETURN_IF_ERROR(Send(offsets_.positions, rows_ * sizeof(std::int32_t)));
  PENSTOCK_RETURN_IF_ERROR(Send(offsets_.logit_rows, logit_rows_ * sizeof(std::int32_t)));
  for (std::uint32_t group = 0; group < kv_groups(); ++group) {
    PENSTOCK_RETURN_IF_ERROR(Send(offsets_.cache_rows[group], rows_ * sizeof(std::int64_t)));
    PENSTOCK_RETURN_IF_ERROR(
        Send(offsets_.blocks[group], block_entries_[group] * sizeof(std::uint32_t)));
  }
  for (std::size_t i = 0; i < ropes_.size(); ++i) {
    if (ropes_[i].DependsOnLength()) PENSTOCK_RETURN_IF_ERROR(SendAngles(i));
  }
  for (std::size_t i = 0; i < work_.size(); ++i) PENSTOCK_RETURN_IF_ERROR(SendWindow(i));
  return absl::OkStatus();
}

DeviceInputs StepInputs::OnDevice() const {
  DeviceInputs inputs;
  inputs.rows = rows_;
  inputs.logit_count = logit_rows_;
  const auto at = [this](std::size_t offset) -> const void* { return device_.At(offset); };
  inputs.tokens = static_cast<const std::int32_t*>(at(offsets_.tokens));
  inputs.newest = static_cast<const std::int32_t*>(at(offsets_.newest));
  inputs.positions = static_cast<const std::int32_t*>(at(offsets_.positions));
  for (std::uint32_t group = 0; group < kv_groups(); ++group) {
    inputs.cache_rows[group] = static_cast<const std::int64_t*>(at(offsets_.cache_rows[group]));
  }
  inputs.logit_rows = static_cast<const std::int32_t*>(at(offsets_.logit_rows));
  for (std::size_t i = 0; i < ropes_.size(); ++i) {
    DeviceInputs::Angles& angles = inputs.angles.emplace_back();
    if (!ropes_[i].DependsOnLength()) continue;
    angles.cos = static_cast<const float*>(at(offsets_.angles[i].cos));
    angles.sin = static_cast<const float*>(at(offsets_.angles[i].sin));
  }
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const Offsets::Window& window = offsets_.windows[i];
    const AttentionWork& work = work_[i];
    AttentionArgs& args = inputs.attention.emplace_back();
    args.tiles = static_cast<const AttentionTile*>(at(window.tiles));
    args.items = static_cast<const AttentionItem*>(at(window.items));
    args.rows = static_cast<const AttentionRow*>(at(window.rows));
    args.chunks = static_cast<const AttentionTile*>(at(window.chunks));
    args.blocks = static_cast<const std::uint32_t*>(at(offsets_.blocks[windows_[i].kv_group]));
    args.item_count = static_cast<std::uint32_t>(work.items.size());
    args.row_count = static_cast<std::uint32_t>(work.rows.size());
    args.chunk_count = static_cast<std::uint32_t>(work.chunks.size());
    args.block_size = block_size_;
    args.window = windows_[i].window;
    args.chunk = windows_[i].chunk;
    args.shape = shape_;
    args.kind = kind_;
  }
  return inputs;
}

}  // namespace penstock::shard::cuda
