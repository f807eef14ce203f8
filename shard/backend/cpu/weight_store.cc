#include "shard/backend/cpu/weight_store.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <set>
#include <utility>

#include "common/status.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kPage = 4096;

std::size_t RoundUp(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Vectors are read in whole registers.
std::vector<float> Widened(const TensorView& view, std::size_t lanes) {
  const auto size = static_cast<std::size_t>(view.Elements());
  std::vector<float> values(RoundUp(size, lanes), 0.0f);
  for (std::size_t i = 0; i < size; ++i) values[i] = ReadElement(view.data, i, view.dtype);
  return values;
}

// The pages that lie wholly within the view.
void GiveBack(const TensorView& view) {
  const auto begin = RoundUp(reinterpret_cast<std::uintptr_t>(view.data), kPage);
  const auto end = (reinterpret_cast<std::uintptr_t>(view.data) + view.Bytes()) / kPage * kPage;
  if (end > begin) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace

struct WeightStore::Plan {
  std::set<std::int32_t> matrices, gated, embeddings, vectors;
  std::map<std::int32_t, std::int32_t> biases;  // bias -> its matrix

  explicit Plan(const Program& program) {
    for (const std::vector<Op>* ops : {&program.body, &program.head}) {
      for (std::size_t i = 0; i < ops->size(); ++i) {
        const bool gates = i + 1 < ops->size() && (*ops)[i + 1].kind == OpKind::kGatedActivation;
        Add((*ops)[i], gates);
      }
    }
  }

 private:
  void Add(const Op& op, bool gates) {
    if (op.kind == OpKind::kEmbed) {
      embeddings.insert(op.weight);
    } else if (op.kind == OpKind::kLinear) {
      matrices.insert(op.weight);
      if (gates) gated.insert(op.weight);
      if (op.bias != kNoWeight) biases[op.bias] = op.weight;
    } else {
      for (std::int32_t weight : {op.weight, op.weight2}) {
        if (weight != kNoWeight) vectors.insert(weight);
      }
    }
  }
};

absl::StatusOr<WeightStore> WeightStore::Create(const Program& program, LoadedWeights weights,
                                                const Kernels& kernels, Quantization quantization,
                                                WorkerPool& pool) {
  const Plan plan(program);
  WeightStore store;
  store.loaded_ = std::move(weights);
  const auto view = [&store](std::int32_t index) -> const TensorView& {
    return store.loaded_.views[static_cast<std::size_t>(index)];
  };
  std::size_t bytes = 0;
  for (std::int32_t index : plan.matrices) {
    const TensorView& from = view(index);
    const MatrixShape shape{static_cast<std::size_t>(from.shape[0]),
                            static_cast<std::size_t>(from.shape[1]), plan.gated.contains(index)};
    const PackedMatrix matrix = quantization == Quantization::kInt8
                                    ? PackedMatrix::Int8(shape, kernels.layout, from.dtype)
                                    : PackedMatrix(shape, kernels.layout, from.dtype);
    bytes += RoundUp(matrix.Bytes(), kPage);
    store.matrices_.emplace(index, matrix);
  }
  auto region = MemoryRegion::Allocate(bytes);
  if (!region.ok()) return WithContext(region.status(), "packed weights");
  store.packed_ = std::move(*region);
  std::byte* next = store.packed_.data();
  for (auto& [index, matrix] : store.matrices_) {
    matrix.SetMemory(next);
    next += RoundUp(matrix.Bytes(), kPage);
  }
  for (std::int32_t index : plan.vectors) {
    store.vectors_[index] = Widened(view(index), kernels.layout.lanes);
  }
  for (const auto& [bias, index] : plan.biases) {
    const PackedMatrix& matrix = store.Matrix(index);
    std::vector<float> packed(matrix.PaddedColumns());
    matrix.PackBias(Widened(view(bias), 1).data(), packed.data());
    store.vectors_[bias] = std::move(packed);
  }
  store.PackAll(plan, pool);
  return store;
}

void WeightStore::PackAll(const Plan& plan, WorkerPool& pool) {
  bool rows_needed = false;
  for (std::int32_t index : plan.embeddings) rows_needed |= !matrices_.contains(index);
  for (auto& [index, matrix] : matrices_) {
    const TensorView& from = loaded_.views[static_cast<std::size_t>(index)];
    PackedMatrix& to = matrix;
    pool.Run([&](std::uint32_t thread) {
      to.Pack(from, EvenShare(to.panels(), pool.threads(), thread));
    });
    GiveBack(from);
  }
  if (!rows_needed) loaded_ = {};
}

const float* WeightStore::Vector(std::int32_t index) const {
  return index == kNoWeight ? nullptr : vectors_.at(index).data();
}

void WeightStore::EmbeddingRow(std::int32_t index, std::size_t row, float* out) const {
  const auto packed = matrices_.find(index);
  if (packed != matrices_.end()) {
    packed->second.UnpackRow(row, out);
    return;
  }
  const TensorView& view = loaded_.views[static_cast<std::size_t>(index)];
  const auto width = static_cast<std::size_t>(view.shape[1]);
  for (std::size_t i = 0; i < width; ++i) {
    out[i] = ReadElement(view.data, row * width + i, view.dtype);
  }
}

std::uint64_t WeightStore::MemoryBytes() const {
  std::uint64_t bytes = packed_.bytes();
  for (const auto& [index, values] : vectors_) bytes += values.size() * sizeof(float);
  for (std::size_t i = 0; i < loaded_.views.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    if (!matrices_.contains(index) && !vectors_.contains(index)) bytes += loaded_.views[i].Bytes();
  }
  return bytes;
}

}  // namespace penstock::shard::cpu
