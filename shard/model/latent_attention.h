// Multi-head latent attention (MLA, arXiv:2405.04434) in its absorbed form, for the files of
// shard/model/architectures. The cache holds one vector per position: the normalised latent and the
// rotated RoPE key, which all heads share. A head's keys and values are products of the latent. So
// each query is multiplied with the head's key matrix, and each result with its value matrix:
//
//   query of head h over the cache:  [K_h^T * q_nope, q_rope]
//   output of head h:                V_h * (sum of probabilities * latents)
//
// All queries are computed so, and the bits of a token do not depend on how the prompt was cut.
#pragma once

#include <cstdint>
#include <string>

#include "shard/model/decoder_builder.h"

namespace penstock::shard {

struct LatentHeads {
  std::uint32_t query_latent = 0;  // width of the queries' own latent; 0 = there is none
  std::uint32_t latent = 0;        // width of the latent of keys and values
  std::uint32_t nope = 0;          // dimensions of a query head without RoPE; they come first
  std::uint32_t rope = 0;          // dimensions with RoPE; even
  std::uint32_t value = 0;         // dimensions of a value head
  bool interleaved = true;         // as in LatentWriteOp
  float scale = 1.0f;              // of the products of queries and keys
};

// Appends the attention of a layer, with the tensors "`name`.q_proj" or "`name`.q_a_proj" and so
// on. It reads the last norm. Its output product begins the branch.
void AddLatentAttention(DecoderBuilder& b, const std::string& name, const LatentHeads& heads);

}  // namespace penstock::shard
