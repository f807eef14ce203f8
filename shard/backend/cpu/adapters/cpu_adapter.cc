#include "shard/backend/cpu/adapters/cpu_adapter.h"

#include <algorithm>

#include "common/round_up.h"
#include "common/status.h"
#include "shard/weights/convert.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kStrideUnit = 32;  // elements: two vectors of every instruction set

}  // namespace

absl::StatusOr<std::unique_ptr<CpuAdapter>> CpuAdapter::Create(const LoraAdapter& adapter,
                                                               const WeightStore& weights,
                                                               const Kernels& kernels) {
  const LoraKernels& chosen = adapter.bfloat16 ? kernels.bfloat16_lora : kernels.float32_lora;
  std::unique_ptr<CpuAdapter> made(
      new CpuAdapter(chosen, adapter.bfloat16 ? sizeof(std::uint16_t) : sizeof(float)));
  made->Arrange(adapter, weights, kernels.layout.lanes);
  auto region = MemoryRegion::Allocate(made->used_);
  if (!region.ok()) return WithContext(region.status(), "adapter");
  made->region_ = std::move(*region);
  made->used_ = 0;
  made->deltas_.clear();
  made->Arrange(adapter, weights, kernels.layout.lanes);
  return made;
}

std::byte* CpuAdapter::Take(std::size_t elements) {
  std::byte* const piece = region_.data() == nullptr ? nullptr : region_.data() + used_;
  used_ += RoundUp(elements * element_, kCacheLineBytes);
  return piece;
}

void CpuAdapter::Write(std::byte* to, std::size_t index, float value) const {
  const DType type = element_ == sizeof(float) ? DType::kFloat32 : DType::kBFloat16;
  ConvertElements(&value, DType::kFloat32, to + index * element_, type, 1);
}

void CpuAdapter::Arrange(const LoraAdapter& adapter, const WeightStore& weights,
                         std::size_t lanes) {
  for (const LoraDelta& source : adapter.deltas) {
    Delta& delta = deltas_[source.target];
    delta.ranks = source.Ranks();
    delta.stride = RoundUp(source.columns, kStrideUnit);
    std::byte* const down = Take(delta.ranks * delta.stride);
    delta.down = down;
    for (const LoraModule& module : source.modules) {
      const std::size_t first = delta.scales.size();
      AddModule(module, weights.Matrix(source.target), lanes, delta);
      if (down == nullptr) continue;
      for (std::size_t i = 0; i < module.down.size(); ++i) {
        const std::size_t row = first + i / source.columns;
        Write(down, row * delta.stride + i % source.columns, module.down[i]);
      }
    }
  }
}

// Vectors of gate and up alternate in a gated matrix, and a module may be one of the two.
void CpuAdapter::AddModule(const LoraModule& module, const PackedMatrix& matrix, std::size_t lanes,
                           Delta& delta) {
  Up up;
  up.first_rank = delta.scales.size();
  up.ranks = module.rank;
  up.step = matrix.UnitVectors();
  delta.scales.insert(delta.scales.end(), module.rank, module.scale);
  for (std::size_t first = 0; first < up.step; ++first) {
    up.first_vector = first;
    AddUp(module, matrix, lanes, up, delta);
  }
}

// The rows of the module in vectors up.first_vector + n * up.step.
void CpuAdapter::AddUp(const LoraModule& module, const PackedMatrix& matrix, std::size_t lanes,
                       Up up, Delta& delta) {
  const auto place = [&](std::uint32_t row) { return matrix.ColumnOf(row) / lanes; };
  const auto is_mine = [&](std::uint32_t row) { return place(row) % up.step == up.first_vector; };
  std::size_t first = SIZE_MAX, last = 0;
  for (const std::uint32_t row : module.rows) {
    if (!is_mine(row)) continue;
    first = std::min(first, place(row));
    last = std::max(last, place(row));
  }
  if (first == SIZE_MAX) return;
  const std::size_t offset = up.first_vector;
  up.first_vector = first;
  up.vectors = (last - first) / up.step + 1;
  std::byte* const data = Take(up.vectors * up.ranks * lanes);
  up.data = data;
  delta.ups.push_back(up);
  if (data == nullptr) return;
  for (std::size_t i = 0; i < module.rows.size(); ++i) {
    if (place(module.rows[i]) % up.step != offset) continue;
    const std::size_t vector = (place(module.rows[i]) - first) / up.step;
    const std::size_t lane = matrix.ColumnOf(module.rows[i]) % lanes;
    for (std::size_t r = 0; r < up.ranks; ++r) {
      Write(data, (vector * up.ranks + r) * lanes + lane, module.up[i * up.ranks + r]);
    }
  }
}

}  // namespace penstock::shard::cpu
