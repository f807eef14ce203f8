// Norms of query and key heads beside DecoderBuilder::HeadNorm, for the files of
// shard/model/architectures. They change what the last Qkv gave.
#pragma once

#include <cstdint>
#include <string>

#include "shard/model/decoder_builder.h"

namespace penstock::shard {

// LayerNorm of each query head and of each key head. `weights`: the number of the stored tensors
// and their form.
enum class HeadWeights : std::uint8_t {
  kShared,    // "`name`.weight" [key_dim], and a bias if it is stored
  kStacked,   // "`name`.weight" [heads, key_dim]
  kSeparate,  // "`name`.norms.N.weight" [key_dim] for head N
};
void AddHeadLayerNorm(DecoderBuilder& b, const std::string& query, const std::string& key,
                      HeadWeights weights);

// RMSNorm of each query head and of each key head without weights.
void AddPlainHeadNorm(DecoderBuilder& b);

// RMSNorm over all query heads of all ranks, and over all key heads.
void AddWidthNorm(DecoderBuilder& b, const std::string& query, const std::string& key);

}  // namespace penstock::shard
