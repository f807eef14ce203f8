#include "shard/backend/reference/kv_store.h"

namespace penstock::shard {

KvStore::KvStore(const PagedLayout& layout, std::uint32_t blocks, std::uint32_t spare,
                 at::Device device)
    : layout_(layout), blocks_(blocks), spare_(spare) {
  const std::int64_t width = std::int64_t{layout.block_size} * layout.kv_heads * layout.head_dim;
  const auto options = at::TensorOptions().dtype(ToScalarType(layout.dtype)).device(device);
  for (std::uint32_t i = 0; i < layout.layers; ++i) {
    keys_.push_back(at::zeros({blocks + spare, width}, options));
    values_.push_back(at::zeros({blocks + spare, width}, options));
  }
  if (!has_hidden()) return;
  hidden_ = at::zeros({blocks + spare, std::int64_t{layout.block_size} * layout.hidden}, options);
}

void KvStore::Write(std::uint32_t layer, const at::Tensor& slots, const at::Tensor& k,
                    const at::Tensor& v) {
  keys_[layer].view({positions(), -1}).index_copy_(0, slots, k);
  values_[layer].view({positions(), -1}).index_copy_(0, slots, v);
}

at::Tensor KvStore::KeysAt(std::uint32_t layer, const at::Tensor& slots) const {
  const at::Tensor all = keys_[layer].view({positions(), layout_.kv_heads, layout_.head_dim});
  return at::index_select(all, 0, slots).to(at::kFloat);
}

at::Tensor KvStore::ValuesAt(std::uint32_t layer, const at::Tensor& slots) const {
  const at::Tensor all = values_[layer].view({positions(), layout_.kv_heads, layout_.head_dim});
  return at::index_select(all, 0, slots).to(at::kFloat);
}

void KvStore::WriteHidden(const at::Tensor& slots, const at::Tensor& rows) {
  hidden_.view({positions(), -1}).index_copy_(0, slots, rows.to(hidden_.scalar_type()));
}

at::Tensor KvStore::Hidden(const at::Tensor& table, std::int64_t count) const {
  const std::int64_t blocks = (count + layout_.block_size - 1) / layout_.block_size;
  return at::index_select(hidden_, 0, table.narrow(0, 0, blocks))
      .view({-1, layout_.hidden})
      .narrow(0, 0, count)
      .to(at::kFloat);
}

at::Tensor KvStore::Gather(const at::Tensor& storage, const at::Tensor& table, std::int64_t first,
                           std::int64_t count) const {
  const std::int64_t size = layout_.block_size;
  const std::int64_t first_block = first / size;
  const std::int64_t last_block = (first + count - 1) / size;
  const at::Tensor ids = table.narrow(0, first_block, last_block - first_block + 1);
  // Narrowed before use: what lies behind the sequence's end in its last block is not its own.
  return at::index_select(storage, 0, ids)
      .view({-1, layout_.kv_heads, layout_.head_dim})
      .narrow(0, first - first_block * size, count)
      .to(at::kFloat);
}

void KvStore::CopyBlock(std::int64_t src, std::int64_t dst) {
  for (std::vector<at::Tensor>* storage : {&keys_, &values_}) {
    for (at::Tensor& layer : *storage) layer.select(0, dst).copy_(layer.select(0, src));
  }
  if (has_hidden()) hidden_.select(0, dst).copy_(hidden_.select(0, src));
}

void KvStore::CopyPosition(std::int64_t src, std::int64_t dst) {
  const auto copy = [&](const at::Tensor& storage) {
    const at::Tensor cells = storage.view({positions(), -1});
    cells.select(0, dst).copy_(cells.select(0, src));
  };
  for (const at::Tensor& layer : keys_) copy(layer);
  for (const at::Tensor& layer : values_) copy(layer);
  if (has_hidden()) copy(hidden_);
}

}  // namespace penstock::shard
