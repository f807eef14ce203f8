#include "shard/backend/cuda/step_inputs.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "common/status.h"
#include "shard/backend/row_angles.h"

namespace penstock::shard::cuda {
namespace {

constexpr std::size_t kAlignment = 16;

std::size_t Aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Inputs of a step: other angles are in a table.
std::size_t AnglesOfARow(const RopeSpec& rope) { return rope.DependsOnLength() ? rope.dim / 2 : 0; }

}  // namespace

// The bytes of all inputs but the tables of KV group 1.
std::size_t StepInputs::MostBytes(const InputLimits& limits, const std::vector<RopeSpec>& ropes) {
  std::size_t row = 4 * sizeof(std::int32_t) + kMostKvGroups * sizeof(std::int64_t) +
                    limits.windows * (2 * sizeof(AttentionTile) + sizeof(AttentionRow));
  for (const RopeSpec& rope : ropes) row += 2 * AnglesOfARow(rope) * sizeof(float);
  const std::size_t arrays =
      4 + 2 * kMostKvGroups + 4 * std::size_t{limits.windows} + 2 * ropes.size();
  return limits.rows * row + std::size_t{limits.windows} * limits.items * sizeof(AttentionItem) +
         limits.blocks * sizeof(std::uint32_t) + arrays * kAlignment;
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
  inputs.ropes_ = ropes;
  for (const RopeSpec& rope : ropes) {
    const std::size_t count = limits.rows * AnglesOfARow(rope);
    inputs.angles_.push_back({std::vector<float>(count), std::vector<float>(count)});
  }
  inputs.window_tables_ = Aligned(MostBytes(inputs.limits_, ropes));
  inputs.work_.resize(windows.size());
  inputs.windows_ = std::move(windows);
  inputs.kv_window_ = kv_window;
  const std::size_t bytes = inputs.window_tables_ + (inputs.kv_groups() - 1) *
                                                        std::size_t{limits.blocks} *
                                                        sizeof(std::uint32_t);
  for (GpuMemory& staging : inputs.staging_) {
    PENSTOCK_ASSIGN_OR_RETURN(staging, GpuMemory::Pinned(gpu, bytes));
  }
  PENSTOCK_ASSIGN_OR_RETURN(inputs.device_, GpuMemory::OnDevice(gpu, bytes));
  return inputs;
}

void StepInputs::AddPositions(const RaggedSegment& segment) {
  for (std::uint32_t i = 0; i < segment.query_count; ++i) {
    positions_.push_back(static_cast<std::int32_t>(segment.context_length + i));
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
    cache_rows_[group].push_back(
        static_cast<std::int64_t>(block * block_size_ + position % block_size_));
  }
  std::vector<std::uint32_t>& blocks = blocks_[group];
  tables_[group].push_back(static_cast<std::uint32_t>(blocks.size()));
  const std::uint32_t end = segment.context_length + segment.query_count;
  const std::uint32_t needed = (end + block_size_ - 1) / block_size_;
  const std::uint64_t visible =
      FirstVisible(group == 0 ? 0 : kv_window_, segment.context_length) / block_size_;
  for (std::uint32_t i = 0; i < needed; ++i) {
    blocks.push_back(i < visible ? scratch_[group] : table[i].value());
  }
}

void StepInputs::Fill(const RaggedBatch& batch, std::span<const std::int32_t> newest) {
  turn_ = 1 - turn_;
  for (std::uint32_t group = 0; group < kMostKvGroups; ++group) {
    tables_[group].clear();
    cache_rows_[group].clear();
    blocks_[group].clear();
  }
  positions_.clear();
  tokens_.assign(batch.tokens.begin(), batch.tokens.end());
  newest_.assign(newest.begin(), newest.end());
  newest_.resize(tokens_.size(), -1);
  logit_rows_.assign(batch.logit_rows.begin(), batch.logit_rows.end());
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
  for (std::uint32_t row = rows(); row < shape.rows; ++row) {
    tokens_.push_back(0);
    for (std::uint32_t group = 0; group < kv_groups(); ++group) {
      cache_rows_[group].push_back(std::int64_t{scratch_[group]} * block_size_);
    }
    for (AttentionWork& work : work_) {
      work.rows.push_back({row, static_cast<std::uint32_t>(work.tiles.size())});
      work.tiles.push_back({.first_row = row, .rows = 1});
    }
  }
  newest_.resize(shape.rows, -1);
  positions_.resize(shape.rows, 0);
  logit_rows_.resize(shape.rows, 0);
  for (AttentionWork& work : work_) work.items.resize(shape.items);
}

// Block tables come last: their size differs between steps of one shape.
std::size_t StepInputs::Pack() {
  std::size_t end = 0;
  const auto pack = [&](const auto& values) {
    const std::size_t begin = end;
    const std::size_t bytes = values.size() * sizeof values[0];
    end += Aligned(bytes);
    if (end <= window_tables_) std::memcpy(staging_[turn_].At(begin), values.data(), bytes);
    return begin;
  };
  offsets_.tokens = pack(tokens_);
  offsets_.newest = pack(newest_);
  offsets_.positions = pack(positions_);
  offsets_.logit_rows = pack(logit_rows_);
  for (std::uint32_t group = 0; group < kv_groups(); ++group) {
    offsets_.cache_rows[group] = pack(cache_rows_[group]);
  }
  offsets_.angles.clear();
  for (std::size_t i = 0; i < ropes_.size(); ++i) {
    // Rows of padding have those of an earlier step.
    const std::size_t count = rows() * AnglesOfARow(ropes_[i]);
    const std::size_t cos = pack(std::span(angles_[i].cos).first(count));
    offsets_.angles.push_back({cos, pack(std::span(angles_[i].sin).first(count))});
  }
  offsets_.windows.clear();
  for (const AttentionWork& work : work_) {
    offsets_.windows.push_back(
        {pack(work.tiles), pack(work.items), pack(work.rows), pack(work.chunks)});
  }
  offsets_.blocks = {pack(blocks_[0]), window_tables_};
  return end;
}

absl::Status StepInputs::Upload() {
  const GpuMemory& staging = staging_[turn_];
  const std::size_t bytes = Pack();
  const std::size_t window_bytes = blocks_[1].size() * sizeof(std::uint32_t);
  if (bytes > window_tables_ || window_tables_ + window_bytes > staging.bytes()) {
    return absl::InternalError("the inputs of a step are larger than was prepared");
  }
  PENSTOCK_RETURN_IF_ERROR(gpu_->Upload(device_.data(), staging.data(), bytes));
  if (window_bytes == 0) return absl::OkStatus();
  std::memcpy(staging.At(window_tables_), blocks_[1].data(), window_bytes);
  return gpu_->Upload(device_.At(window_tables_), staging.At(window_tables_), window_bytes);
}

DeviceInputs StepInputs::OnDevice() const {
  DeviceInputs inputs;
  inputs.rows = rows();
  inputs.logit_count = static_cast<std::uint32_t>(logit_rows_.size());
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
