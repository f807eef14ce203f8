// The decoder as data: a flat list of operations over named buffers, built once from the ModelSpec
// for one rank. A Backend walks the list; it knows no model families.
//
// Every buffer is [rows, width], with one row per token of the batch. kQkv holds the rank's query
// heads, then its key heads, then its value heads. kMlpUp holds the gate half, then the up
// half, or the up half alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "shard/model/model_spec.h"
#include "shard/model/rank_share.h"

namespace penstock::shard {

enum class Buffer : std::uint8_t {
  kHidden,  // the residual stream
  kNormed,
  kQkv,
  kAttention,
  kMlpUp,     // before the activation
  kMlp,       // after the activation
  kBranch,    // output of attention or MLP, not yet added to kHidden
  kSelected,  // rows of kNormed whose logits are wanted
  kLogits,    // this rank's share of the vocabulary
  kNone,
};
inline constexpr std::size_t kBufferCount = static_cast<std::size_t>(Buffer::kNone);

// An index into WeightPlan::targets.
using WeightIndex = std::int32_t;
inline constexpr WeightIndex kNoWeight = -1;

// out = rows of `table`. A token whose row another rank has gives zeros.
struct EmbedOp {
  static constexpr std::string_view kName = "embed";
  Buffer out = Buffer::kNone;
  WeightIndex table = kNoWeight;
};

enum class NormKind : std::uint8_t {
  kRms,    // x / rms(x) * weight
  kLayer,  // (x - mean(x)) / deviation(x) * weight + bias
};

// in += add, unless `add` is kNone; then out = norm(in).
struct NormOp {
  static constexpr std::string_view kName = "norm";
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  Buffer add = Buffer::kNone;
  NormKind kind = NormKind::kRms;
  WeightIndex weight = kNoWeight;
  WeightIndex bias = kNoWeight;  // of kLayer
  float eps = 1e-6f;
};

// out = in * weight^T + bias, or out += that.
struct LinearOp {
  static constexpr std::string_view kName = "linear";
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  WeightIndex weight = kNoWeight;
  WeightIndex bias = kNoWeight;
  bool gated = false;  // the rows of `weight` are gate, then up; a GatedActivationOp reads `out`
  bool accumulate = false;
};

// RMSNorm of each query head and of each key head of `qkv`, in place.
struct HeadNormOp {
  static constexpr std::string_view kName = "head norm";
  Buffer qkv = Buffer::kNone;
  WeightIndex query_weight = kNoWeight;
  WeightIndex key_weight = kNoWeight;
  float eps = 1e-6f;
};

// Rotates the first rope.dim dimensions of each query and key head of `qkv` in place. Writes K and
// V to the layer's cache.
struct RopeKvWriteOp {
  static constexpr std::string_view kName = "RoPE and K/V write";
  Buffer qkv = Buffer::kNone;
  std::uint32_t layer = 0;
};

// out = attention of the queries in `qkv` over the layer's cache.
struct AttentionOp {
  static constexpr std::string_view kName = "attention";
  Buffer qkv = Buffer::kNone;
  Buffer out = Buffer::kNone;
  std::uint32_t layer = 0;
  std::uint32_t window = 0;  // positions that a query sees; 0 = all
  float scale = 1.0f;        // of the products of queries and keys
};

// out = silu(gate) * up.
struct GatedActivationOp {
  static constexpr std::string_view kName = "gated activation";
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
};

enum class Activation : std::uint8_t {
  kGelu,      // x * Phi(x), where Phi is the normal distribution
  kGeluTanh,  // the same with Phi approximated by tanh
};

// out = activation(in).
struct ActivationOp {
  static constexpr std::string_view kName = "activation";
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  Activation activation = Activation::kGelu;
};

// buffer = sum over the ranks.
struct AllReduceOp {
  static constexpr std::string_view kName = "all-reduce";
  Buffer buffer = Buffer::kNone;
};

// out = the rows of `in` whose logits the batch needs.
struct SelectRowsOp {
  static constexpr std::string_view kName = "select rows";
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
};

// Gathers all ranks' shares of `buffer` for the host.
struct AllGatherOp {
  static constexpr std::string_view kName = "all-gather";
  Buffer buffer = Buffer::kNone;
};

using Op = std::variant<EmbedOp, NormOp, LinearOp, HeadNormOp, RopeKvWriteOp, AttentionOp,
                        GatedActivationOp, ActivationOp, AllReduceOp, SelectRowsOp, AllGatherOp>;

// The name of an operation, for messages.
inline std::string_view NameOf(const Op& op) {
  return std::visit([](const auto& typed) { return typed.kName; }, op);
}

struct Program {
  std::vector<Op> body;  // once per Execute, ends with a SelectRowsOp
  std::vector<Op> head;  // once per Logits, over some rows of kSelected
  std::array<std::uint32_t, kBufferCount> widths{};

  RankShare part;
  std::uint32_t layers = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocabulary = 0;  // of all ranks, without padding
  RopeSpec rope;

  std::uint32_t Width(Buffer buffer) const { return widths[static_cast<std::size_t>(buffer)]; }
};

}  // namespace penstock::shard
