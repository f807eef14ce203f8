// The buffers of a Program.
//
// Every buffer is [rows, width], with one row per token of the batch. Its width is that of the
// widest use; an operation uses the first columns that it needs. kQkv holds the rank's query heads,
// then its key heads, then its value heads. kMlpUp holds the gate half, then the up half, or the up
// half alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::shard {

enum class Buffer : std::uint8_t {
  kHidden,  // the residual stream
  kNormed,
  kQkv,
  kAttention,
  kMlpUp,     // before the activation
  kMlp,       // after the activation
  kXieluUp,   // before an xIELU, in place of kMlpUp
  kRouter,    // scores of the experts
  kSharedUp,  // of the shared expert, as kMlpUp and kMlp
  kShared,
  kSharedGate,  // one column
  kBranch,      // output of attention or MLP, not yet added to kHidden
  kSelected,    // rows of kNormed whose logits are wanted
  kLogits,      // this rank's share of the vocabulary
  kSideBranch,  // a second branch beside kBranch
  kPerLayer,    // inputs of the tokens to all layers, one after the other
  kPerLayerProjected,
  kPerLayerUp,    // before the activation
  kPerLayerGate,  // after the activation
  kWords,         // embeddings that are narrower than the residual stream

  // For latent attention, where kQkv holds query heads alone.
  kQueryDown,      // the queries' own latent before its norm
  kQueryLatent,    // the same after it
  kLatent,         // the latent of keys and values, then the RoPE key
  kLatentQueries,  // query heads as wide as the latent cache
  kLatentMixed,    // heads of mixed latents

  // For gated attention and gated delta nets.
  kAttentionGate,  // one column for each of kAttention
  kDelta,          // inputs of a gated delta net
  kDeltaMixed,     // after its convolution
  kDeltaOut,

  kSquares,  // sums of squares of all queries and of all keys
  kNone,
};
inline constexpr std::size_t kBufferCount = static_cast<std::size_t>(Buffer::kNone);

// Heads of one attention layer on this rank. kQkv holds query_heads and kv_heads of key_dim
// columns, then kv_heads of value_dim columns. Attention gives query_heads of value_dim columns.
struct HeadShape {
  std::uint32_t query_heads = 0;
  std::uint32_t kv_heads = 0;  // divides query_heads
  std::uint32_t key_dim = 0;
  std::uint32_t value_dim = 0;

  std::uint32_t Group() const { return query_heads / kv_heads; }  // query heads per K/V head
  std::uint32_t QueryWidth() const { return query_heads * key_dim; }
  std::uint32_t KeyWidth() const { return kv_heads * key_dim; }
  std::uint32_t ValueWidth() const { return kv_heads * value_dim; }
  std::uint32_t QkvWidth() const { return QueryWidth() + KeyWidth() + ValueWidth(); }
  std::uint32_t OutputWidth() const { return query_heads * value_dim; }
  bool operator==(const HeadShape&) const = default;
};

}  // namespace penstock::shard
