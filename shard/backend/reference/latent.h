// The operations of latent attention (LatentWriteOp, HeadLinearOp) on ATen tensors.
#pragma once

#include <vector>

#include "shard/backend/reference/aten.h"
#include "shard/model/program.h"

namespace penstock::shard {

// Rotates the pairs (2i, 2i + 1) of x [rows, heads, dim] in place. cos and sin: float32
// [rows, 1, dim / 2].
void RotatePairs(at::Tensor x, const at::Tensor& cos, const at::Tensor& sin);

// Normalises the latent and rotates the RoPE dimensions, in place. queries: [rows, heads, nope_dim
// + rope_dim]; latent: [rows, 1, latent_dim + rope_dim].
void PrepareLatents(const LatentWriteOp& op, const at::Tensor& weight, const at::Tensor& cos,
                    const at::Tensor& sin, at::Tensor queries, at::Tensor latent);

// The product of each head with its own matrix. in: [rows, heads, in_dim + rest]; out: [rows,
// heads, out_dim + rest]. float32 on the CPU: the rows are a multiple of kRowTile.
void MultiplyHeads(const HeadLinearOp& op, const std::vector<at::Tensor>& matrices,
                   const at::Tensor& in, at::Tensor out);

}  // namespace penstock::shard
