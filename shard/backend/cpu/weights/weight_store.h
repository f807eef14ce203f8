// The weights of one rank in the form that the kernels read, in one memory region: packed matrices
// (packed_matrix.h), vectors widened to float32, and the embedding table.
//
// All threads of the pool fill it, each the panels that it will read later, so that these lie on
// the thread's NUMA node. Rows are packed as they are read, so the weights are in memory only once.
// Or the region comes from a file of an earlier start (packed_cache.h).
//
// If the weights do not fit their format (WeightFormat::PackPanel), all matrices are stored in its
// fallback. The file in the cache records that, so a later start does not try again.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/backend/cpu/weights/packed_cache.h"
#include "shard/backend/cpu/weights/packed_matrix.h"
#include "shard/model/program.h"
#include "shard/weights/memory_region.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard::cpu {

class WeightStore {
 public:
  struct Options {
    const WeightSource* source = nullptr;
    const WeightFormat* format = &FormatOf(FormatId::kPlain);  // of the matrices
    LoadProgress progress;                                     // or none
    std::string cache_folder;                                  // empty: no cache
    std::uint64_t cache_most = 0;                              // bytes of all its files
  };

  // `options.source` has the weights of `program`. Only Create uses it.
  static absl::StatusOr<WeightStore> Create(const Program& program, const Options& options,
                                            const Kernels& kernels, WorkerPool& pool);

  // MemoryBytes() and format() of that store, if its weights fit the format. They read no weights.
  static std::uint64_t BytesOf(const Program& program, const Options& options,
                               const Kernels& kernels);
  static const WeightFormat& FormatFor(const Program& program, const Options& options,
                                       const Kernels& kernels);

  // Indexes are those of WeightPlan::targets. A matrix of a linear operation.
  const PackedMatrix& Matrix(std::int32_t index) const { return matrices_.at(index); }
  // A vector; of a bias in packed order. Null for kNoWeight.
  const float* Vector(std::int32_t index) const;
  // Row `row` of an embedding.
  void EmbeddingRow(std::int32_t index, std::size_t row, float* out) const;

  // Until the file of the cache is written.
  void AwaitCache() {
    if (writer_.joinable()) writer_.join();
  }

  std::uint64_t MemoryBytes() const { return region_.bytes(); }
  // Format of the matrices: the fallback if they did not fit the requested format.
  const WeightFormat& format() const { return *format_; }

 private:
  struct Plan;
  struct Item;
  class Filling;
  class Making;
  struct Table {  // rows as they are stored
    std::byte* data = nullptr;
    std::size_t columns = 0;
    DType dtype = DType::kFloat32;
  };

  WeightStore() = default;
  // Decides where everything lies. Sets matrices_, tables_, format_ and bytes_.
  std::vector<Item> Arrange(const Plan& plan, const Options& options, const Kernels& kernels);
  void SetPlaces(const std::vector<Item>& items);
  static std::size_t EndOf(const std::vector<Item>& items);
  // Text that differs between different packings of the same weights.
  std::string PackingText(const std::vector<Item>& items, const Kernels& kernels) const;

  MemoryRegion region_;
  const WeightFormat* format_ = nullptr;
  std::size_t bytes_ = 0;
  std::map<std::int32_t, PackedMatrix> matrices_;
  std::map<std::int32_t, const float*> vectors_;
  std::map<std::int32_t, Table> tables_;
  std::jthread writer_;  // last: it reads the region
};

}  // namespace penstock::shard::cpu
