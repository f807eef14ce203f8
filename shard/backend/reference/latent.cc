#include "shard/backend/reference/latent.h"

#include "shard/backend/reference/operations.h"

namespace penstock::shard {

void RotatePairs(at::Tensor x, const at::Tensor& cos, const at::Tensor& sin) {
  const at::Tensor pairs = x.unflatten(-1, {cos.size(-1), 2});
  const at::Tensor wide = pairs.to(at::kFloat);
  const at::Tensor first = wide.select(-1, 0);
  const at::Tensor second = wide.select(-1, 1);
  const at::Tensor rotated_first = at::mul(first, cos).addcmul_(second, sin, -1);
  const at::Tensor rotated_second = at::mul(second, cos).addcmul_(first, sin);
  pairs.select(-1, 0).copy_(rotated_first);
  pairs.select(-1, 1).copy_(rotated_second);
}

void PrepareLatents(const LatentWriteOp& op, const at::Tensor& weight, const at::Tensor& cos,
                    const at::Tensor& sin, at::Tensor queries, at::Tensor latent) {
  const auto rotate = op.interleaved ? RotatePairs : RotateHalves;
  const at::Tensor plain = latent.narrow(-1, 0, op.latent_dim);
  RmsNorm(plain, weight, 0.0, op.eps, plain);
  rotate(latent.narrow(-1, op.latent_dim, op.rope_dim), cos, sin);
  rotate(queries.narrow(-1, op.nope_dim, op.rope_dim), cos, sin);
}

void MultiplyHeads(const HeadLinearOp& op, const std::vector<at::Tensor>& matrices,
                   const at::Tensor& in, at::Tensor out) {
  const at::Tensor product = at::empty({in.size(0), op.out_dim}, out.options());
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const auto head = static_cast<std::int64_t>(i);
    const at::Tensor x = in.select(1, head).narrow(-1, 0, op.in_dim).contiguous();
    Linear(x, matrices[i], at::Tensor(), product);
    out.select(1, head).narrow(-1, 0, op.out_dim).copy_(product);
  }
  if (op.rest == 0) return;
  out.narrow(-1, op.out_dim, op.rest).copy_(in.narrow(-1, op.in_dim, op.rest));
}

}  // namespace penstock::shard
