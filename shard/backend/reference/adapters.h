// A LoRA adapter as ATen tensors, in the type of the model.
//
// Threading: immutable.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "shard/adapters/lora_adapter.h"
#include "shard/backend/backend.h"
#include "shard/backend/reference/aten.h"

namespace penstock::shard {

class ReferenceAdapter final : public BackendAdapter {
 public:
  ReferenceAdapter(const LoraAdapter& adapter, at::ScalarType type, at::Device device);

  // `out` [1, rows] is the product of `in` [1, columns] and a matrix. Adds the adapter's part.
  void AddTo(WeightIndex matrix, const at::Tensor& in, const at::Tensor& out) const;
  std::uint64_t MemoryBytes() const override;

 private:
  struct Module {
    at::Tensor down;  // [rank, columns]
    at::Tensor up;    // [rows, rank], times the scale
    at::Tensor rows;  // int64 [rows]: columns of `out`
  };
  std::map<WeightIndex, std::vector<Module>> deltas_;
};

}  // namespace penstock::shard
