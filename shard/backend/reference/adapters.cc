#include "shard/backend/reference/adapters.h"

namespace penstock::shard {
namespace {

at::Tensor Matrix(const std::vector<float>& values, std::int64_t rows, at::ScalarType type,
                  at::Device device) {
  const auto columns = static_cast<std::int64_t>(values.size()) / rows;
  return at::from_blob(const_cast<float*>(values.data()), {rows, columns}, at::kFloat)
      .to(device, type, false, true);
}

}  // namespace

ReferenceAdapter::ReferenceAdapter(const LoraAdapter& adapter, at::ScalarType type,
                                   at::Device device) {
  for (const LoraDelta& delta : adapter.deltas) {
    for (const LoraModule& source : delta.modules) {
      const std::vector<std::int64_t> rows(source.rows.begin(), source.rows.end());
      const auto count = static_cast<std::int64_t>(rows.size());
      const at::Tensor up = Matrix(source.up, count, at::kFloat, at::kCPU).mul_(source.scale);
      deltas_[delta.target].push_back(
          {Matrix(source.down, source.rank, type, device), up.to(device, type),
           at::from_blob(const_cast<std::int64_t*>(rows.data()), {count}, at::kLong)
               .to(device, at::kLong, false, true)});
    }
  }
}

void ReferenceAdapter::AddTo(WeightIndex matrix, const at::Tensor& in,
                             const at::Tensor& out) const {
  const auto found = deltas_.find(matrix);
  if (found == deltas_.end()) return;
  for (const Module& module : found->second) {
    const at::Tensor low = at::mm(in, module.down.t());
    out.index_add_(1, module.rows, at::mm(low, module.up.t()));
  }
}

std::uint64_t ReferenceAdapter::MemoryBytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [matrix, modules] : deltas_) {
    for (const Module& module : modules) {
      bytes += module.down.nbytes() + module.up.nbytes() + module.rows.nbytes();
    }
  }
  return bytes;
}

}  // namespace penstock::shard
