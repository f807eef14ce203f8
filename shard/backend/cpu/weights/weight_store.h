// The weights of one rank as the kernels want them, in one region of memory: matrices packed
// (and quantised), vectors widened to float32, the embedding where rows can be looked up.
//
// Filled by all threads of the pool side by side, each about the panels that it will read later, so
// that they lie on its NUMA node as long as the system leaves threads where they are. Rows are
// packed as they are read, so that the weights are in memory once. Or taken from a file of an
// earlier start (packed_cache.h).
//
// Weights that are to be coded (coded_block.h) and do not let themselves, since too many blocks
// hold weights of very different size, are kept plain after all: all of them. Their file in the
// cache says so to later starts.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "shard/backend/cpu/weights/packed_cache.h"
#include "shard/backend/cpu/weights/packed_matrix.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/model/program.h"
#include "shard/weights/memory_region.h"
#include "shard/weights/weight_source.h"

namespace penstock::shard::cpu {

class WeightStore {
 public:
  struct Options {
    const WeightSource* source = nullptr;
    Storage storage = Storage::kPlain;  // of matrices
    LoadProgress progress;              // or none
    std::string cache_folder;           // empty: no cache
    std::uint64_t cache_most = 0;       // bytes of all its files
  };

  // The source belongs to `program`; it is not used later.
  static absl::StatusOr<WeightStore> Create(const Program& program, const Options& options,
                                            const Kernels& kernels, WorkerPool& pool);

  // What MemoryBytes() and storage() of that store will be, if its weights can be kept so. They
  // read nothing.
  static std::uint64_t BytesOf(const Program& program, const Options& options,
                               const Kernels& kernels);
  static Storage StorageOf(const Program& program, const Options& options, const Kernels& kernels);

  // Indexes are those of WeightPlan::targets. A matrix that some linear operation uses.
  const PackedMatrix& Matrix(std::int32_t index) const { return matrices_.at(index); }
  // A vector; of a bias in packed order. Null for kNoWeight.
  const float* Vector(std::int32_t index) const;
  // Row `row` of an embedding.
  void EmbeddingRow(std::int32_t index, std::size_t row, float* out) const;

  // Until the file of the cache is written.
  void AwaitCache() {
    if (writer_ != nullptr) writer_->Await();
  }

  std::uint64_t MemoryBytes() const { return region_.bytes(); }
  // As they are really kept: plain where none could be coded.
  Storage storage() const { return storage_; }

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
  // Where everything lies, and how many bytes that is.
  std::vector<Item> Arrange(const Plan& plan, const Options& options, const Kernels& kernels);
  void SetPlaces(const std::vector<Item>& items);
  static std::size_t EndOf(const std::vector<Item>& items);
  // What makes another packing of the same weights another image.
  std::string PackingText(const std::vector<Item>& items, const Kernels& kernels) const;

  MemoryRegion region_;
  Storage storage_ = Storage::kPlain;
  std::size_t bytes_ = 0;
  std::map<std::int32_t, PackedMatrix> matrices_;
  std::map<std::int32_t, const float*> vectors_;
  std::map<std::int32_t, Table> tables_;
  std::unique_ptr<CacheWriter> writer_;  // last: it reads the region
};

}  // namespace penstock::shard::cpu
