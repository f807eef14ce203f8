#include "shard/backend/cpu/latent/latent_row.h"

#include <cstddef>

namespace penstock::shard::cpu {
namespace {

// Rotates the pairs (2i, 2i + 1).
void RotatePairs(float* x, const float* cosine, const float* sine, std::size_t half) {
  for (std::size_t i = 0; i < half; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cosine[i] - b * sine[i];
    x[2 * i + 1] = b * cosine[i] + a * sine[i];
  }
}

}  // namespace

void PrepareLatentRow(const LatentWriteOp& op, const Kernels& kernels, const LatentRow& row) {
  const auto rotate = op.interleaved ? RotatePairs : kernels.rope;
  const std::size_t half = op.rope_dim / 2;
  kernels.head_norm({.input = row.latent,
                     .weight = row.weight,
                     .size = op.latent_dim,
                     .eps = op.eps,
                     .out = row.latent});
  rotate(row.latent + op.latent_dim, row.cosine, row.sine, half);
  const std::size_t dim = op.nope_dim + op.rope_dim;
  for (std::size_t head = 0; head < op.heads; ++head) {
    rotate(row.queries + head * dim + op.nope_dim, row.cosine, row.sine, half);
  }
}

}  // namespace penstock::shard::cpu
