// A LoRA adapter in the form that the kernels read: the rows of `down` one after the other, and
// `up` by vectors of packed columns. Adapters whose files hold bfloat16 are kept in it, others in
// float32.
//
// Threading: immutable.
#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "shard/adapters/lora_adapter.h"
#include "shard/backend/backend.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/weights/packed_matrix.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "shard/weights/memory_region.h"

namespace penstock::shard::cpu {

class CpuAdapter final : public BackendAdapter {
 public:
  // Vectors of packed columns of one module: `vectors` of them, `step` apart.
  struct Up {
    std::size_t first_rank = 0;  // among all of the delta
    std::size_t ranks = 0;
    std::size_t first_vector = 0;
    std::size_t step = 1;
    std::size_t vectors = 0;
    const std::byte* data = nullptr;  // [vectors, ranks, lanes]
  };
  struct Delta {
    std::size_t ranks = 0;
    std::size_t stride = 0;           // elements, of a row of `down`
    const std::byte* down = nullptr;  // [ranks, stride], zero after the columns
    std::vector<float> scales;        // [ranks]
    std::vector<Up> ups;
  };

  static absl::StatusOr<std::unique_ptr<CpuAdapter>> Create(const LoraAdapter& adapter,
                                                            const WeightStore& weights,
                                                            const Kernels& kernels);

  // What it adds to a matrix; null: nothing.
  const Delta* Find(WeightIndex matrix) const {
    const auto found = deltas_.find(matrix);
    return found == deltas_.end() ? nullptr : &found->second;
  }
  const LoraKernels& kernels() const { return kernels_; }
  std::size_t element() const { return element_; }  // bytes
  std::uint64_t MemoryBytes() const override { return region_.bytes(); }

 private:
  CpuAdapter(const LoraKernels& kernels, std::size_t element)
      : kernels_(kernels), element_(element) {}

  // Takes memory piece by piece; without a region it only counts.
  void Arrange(const LoraAdapter& adapter, const WeightStore& weights, std::size_t lanes);
  void AddModule(const LoraModule& module, const PackedMatrix& matrix, std::size_t lanes,
                 Delta& delta);
  void AddUp(const LoraModule& module, const PackedMatrix& matrix, std::size_t lanes, Up up,
             Delta& delta);
  std::byte* Take(std::size_t elements);
  void Write(std::byte* to, std::size_t index, float value) const;

  const LoraKernels& kernels_;
  const std::size_t element_;
  MemoryRegion region_;
  std::size_t used_ = 0;
  std::map<WeightIndex, Delta> deltas_;
};

}  // namespace penstock::shard::cpu
