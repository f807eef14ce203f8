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
  // `spare` blocks behind those of the sequences hold what candidates wrote until one is chosen.
  KvStore(const PagedLayout& layout, std::uint32_t blocks, std::uint32_t spare, at::Device device);

  std::uint32_t blocks() const { return blocks_; }
  std::uint64_t Bytes() const { return layout_.Bytes(blocks_ + spare_); }
  bool has_hidden() const { return layout_.hidden > 0; }

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

  // The same for single positions: float32 [slots, kv_heads, head_dim].
  at::Tensor KeysAt(std::uint32_t layer, const at::Tensor& slots) const;
  at::Tensor ValuesAt(std::uint32_t layer, const at::Tensor& slots) const;

  // Hidden-state plane. rows: float32 [rows, hidden]; slots: int64 [rows].
  void WriteHidden(const at::Tensor& slots, const at::Tensor& rows);
  // float32 [positions, hidden] for the first `count` positions of a sequence.
  at::Tensor Hidden(const at::Tensor& table, std::int64_t count) const;

  void CopyBlock(std::int64_t src, std::int64_t dst);
  // One position, in all layers and the plane.
  void CopyPosition(std::int64_t src, std::int64_t dst);

 private:
  std::int64_t positions() const { return (std::int64_t{blocks_} + spare_) * layout_.block_size; }
  at::Tensor Gather(const at::Tensor& storage, const at::Tensor& table, std::int64_t first,
                    std::int64_t count) const;

  PagedLayout layout_;
  std::uint32_t blocks_ = 0;
  std::uint32_t spare_ = 0;
  std::vector<at::Tensor> keys_;  // per layer [blocks, block_size * kv_heads * head_dim]
  std::vector<at::Tensor> values_;
  at::Tensor hidden_;  // [blocks, block_size * hidden]; undefined without a plane
};

}  // namespace penstock::shard
