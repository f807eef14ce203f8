// What a LatentWriteOp computes of one row before the cache write.
#pragma once

#include "shard/backend/cpu/kernels.h"
#include "shard/model/program.h"

namespace penstock::shard::cpu {

struct LatentRow {
  float* queries = nullptr;       // of all heads
  float* latent = nullptr;        // latent and RoPE key
  const float* weight = nullptr;  // of the norm
  const float* cosine = nullptr;  // [rope_dim / 2] of the row's position
  const float* sine = nullptr;
};

// Normalises the latent. Rotates the RoPE key, and the last dimensions of each query head.
void PrepareLatentRow(const LatentWriteOp& op, const Kernels& kernels, const LatentRow& row);

}  // namespace penstock::shard::cpu
