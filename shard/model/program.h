// The decoder as data: a flat list of operations over named buffers, built once from the ModelSpec
// for one rank. A Backend walks the list; it knows nothing of model families.
//
// Layouts: every buffer is [rows, width], one row per token of the batch. kQkv holds the rank's
// query heads, then its key heads, then its value heads; kGateUp the gate half, then the up half.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "shard/model/model_spec.h"
#include "shard/model/partition.h"

namespace penstock::shard {

enum class Buffer : std::uint8_t {
  kHidden,  // the residual stream
  kNormed,
  kQkv,
  kAttention,
  kGateUp,
  kMlp,
  kBranch,    // output of attention or MLP, not yet added to kHidden
  kSelected,  // rows of kNormed whose logits are wanted
  kLogits,    // this rank's share of the vocabulary
  kNone,
};
inline constexpr std::size_t kBufferCount = static_cast<std::size_t>(Buffer::kNone);

inline constexpr std::int32_t kNoWeight = -1;

enum class OpKind : std::uint8_t {
  kEmbed,            // out = rows of `weight`; tokens of other ranks give zeros
  kNorm,             // in += add (unless kNone); out = RMSNorm(in) * weight
  kLinear,           // out = in * weight^T + bias
  kHeadNorm,         // RMSNorm of each query head (weight) and key head (weight2) of `in`, in place
  kRopeKvWrite,      // rotates queries and keys of `in` in place; K and V go to the layer's cache
  kAttention,        // out = attention of the queries in `in` over the layer's cache
  kGatedActivation,  // out = silu(gate) * up
  kAllReduce,        // in = sum over the ranks
  kSelectRows,       // out = the batch's logit rows of in
  kAllGather,        // all ranks' shares of `in`, for the host
};

struct Op {
  OpKind kind = OpKind::kNorm;
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  Buffer add = Buffer::kNone;
  std::int32_t weight = kNoWeight;  // indexes into WeightPlan::targets
  std::int32_t weight2 = kNoWeight;
  std::int32_t bias = kNoWeight;
  std::uint32_t layer = 0;
  std::uint32_t window = 0;  // kAttention: positions a query sees; 0 = all
};

struct Program {
  std::vector<Op> body;  // once per Execute, ends with kSelectRows
  std::vector<Op> head;  // once per Logits, over some rows of kSelected
  std::array<std::uint32_t, kBufferCount> widths{};

  // Scalars that several operations share.
  Partition part;
  std::uint32_t layers = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocabulary = 0;  // of all ranks, without padding
  float norm_eps = 1e-6f;
  float attention_scale = 1.0f;
  RopeSpec rope;

  std::uint32_t Width(Buffer buffer) const { return widths[static_cast<std::size_t>(buffer)]; }
};

}  // namespace penstock::shard
