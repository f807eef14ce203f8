// The weights of one rank as the kernels want them: matrices packed (and quantised), vectors
// widened to float32, the embedding where rows can be looked up. Packs in parallel, each thread
// about the panels that it will read later, and gives the loader's memory back as it goes, so that
// the weights are in memory once.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "shard/backend/cpu/packed_matrix.h"
#include "shard/backend/cpu/worker_pool.h"
#include "shard/model/program.h"
#include "shard/weights/loader.h"
#include "shard/weights/memory_region.h"
#include "shard/weights/quantization.h"

namespace penstock::shard::cpu {

class WeightStore {
 public:
  // `weights` belongs to `program`.
  static absl::StatusOr<WeightStore> Create(const Program& program, LoadedWeights weights,
                                            const Kernels& kernels, Quantization quantization,
                                            WorkerPool& pool);

  // Indexes are those of WeightPlan::targets. A matrix that some linear operation uses.
  const PackedMatrix& Matrix(std::int32_t index) const { return matrices_.at(index); }
  // A vector; of a bias in packed order. Null for kNoWeight.
  const float* Vector(std::int32_t index) const;
  // Row `row` of an embedding.
  void EmbeddingRow(std::int32_t index, std::size_t row, float* out) const;

  std::uint64_t MemoryBytes() const;

 private:
  struct Plan;
  WeightStore() = default;
  void PackAll(const Plan& plan, WorkerPool& pool);

  LoadedWeights loaded_;
  MemoryRegion packed_;
  std::map<std::int32_t, PackedMatrix> matrices_;
  std::map<std::int32_t, std::vector<float>> vectors_;
};

}  // namespace penstock::shard::cpu
