// K and V of every layer as ATen tensors in the paged layout.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/reference/aten.h"
#include "shard/cache/paged/paged_layout.h"

namespace penstock::shard {

class KvStore {
 public:
  KvStore() = default;
  KvStore(const PagedLayout& layout, std::uint32_t blocks, at::Device device);

  std::uint32_t blocks() const { return blocks_; }
  std::uint64_t Bytes() const { return layout_.Bytes(blocks_); }

  // k and v: [rows, kv_heads * head_dim] in the cache's dtype; slots: int64 [rows].
  void Write(std::uint32_t layer, const at::Tensor& slots, const at::Tensor& k,
             const at::Tensor& v);

  // float32 [positions, kv_heads, head_dim] for positions [first, first + count) of a sequence.
  at::Tensor Keys(std::uint32_t layer, const at::Tensor& table, std::int64_t first,
                  std::int64_t count) const {
    return Gather(keys_[layer], table, first, count);
  }
  at::Tensor Values(std::uint32_t layer, const at::Tensor& table, std::int64_t first,
                    std::int64_t count) const {
    return Gather(values_[layer], table, first, count);
  }

  void CopyBlock(std::int64_t src, std::int64_t dst);

 private:
  at::Tensor Gather(const at::Tensor& storage, const at::Tensor& table, std::int64_t first,
                    std::int64_t count) const;

  PagedLayout layout_;
  std::uint32_t blocks_ = 0;
  std::vector<at::Tensor> keys_;  // per layer [blocks, block_size * kv_heads * head_dim]
  std::vector<at::Tensor> values_;
};

}  // namespace penstock::shard
