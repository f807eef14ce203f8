// The decoder as data: a flat list of operations over named buffers, built once from the ModelSpec
// for one rank. A Backend walks the list; it knows no model families. The buffers are in buffers.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "common/plan/group.h"
#include "shard/cache/paged/cache_shape.h"
#include "shard/model/activation.h"
#include "shard/model/buffers.h"
#include "shard/model/model_spec.h"
#include "shard/model/rank_share.h"

namespace penstock::shard {

// An index into WeightPlan::targets.
using WeightIndex = std::int32_t;
inline constexpr WeightIndex kNoWeight = -1;

// out = rows of `table` * scale. A token whose row another rank has gives zeros.
struct EmbedOp {
  static constexpr std::string_view kName = "embed";
  Buffer out = Buffer::kNone;
  WeightIndex table = kNoWeight;
  float scale = 1.0f;
};

// out += row position + offset of `table`: learned positions. With `parts` the row is that of the
// part of the text instead (RaggedSegment::first_part), of a table with so many rows. Without a
// table the row is computed: sines, then cosines, of the position times width / 2 frequencies from
// 1 down to 1e-4.
struct PositionsOp {
  static constexpr std::string_view kName = "positions that are added";
  Buffer out = Buffer::kNone;
  WeightIndex table = kNoWeight;
  std::uint32_t offset = 0;
  std::uint32_t parts = 0;
};

enum class NormKind : std::uint8_t {
  kRms,    // x / rms(x) * weight
  kLayer,  // (x - mean(x)) / deviation(x) * weight + bias
  kCopy,   // x
};

// in += add * add_scale, unless `add` is kNone; then out = norm(in). `in` and `out` may be the same
// buffer.
struct NormOp {
  static constexpr std::string_view kName = "norm";
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  Buffer add = Buffer::kNone;
  float add_scale = 1.0f;
  NormKind kind = NormKind::kRms;
  WeightIndex weight = kNoWeight;  // none = ones
  float weight_offset = 0.0f;      // added to each stored weight of kRms
  WeightIndex bias = kNoWeight;    // of kLayer; none = zeros
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

// Norm of each query head and of each key head of `qkv`, in place. Heads without a weight stay as
// they are unless `plain` is set. Value heads are normalised without a weight if `values` is set.
struct HeadNormOp {
  static constexpr std::string_view kName = "head norm";
  Buffer qkv = Buffer::kNone;
  NormKind kind = NormKind::kRms;
  WeightIndex query_weight = kNoWeight;
  WeightIndex key_weight = kNoWeight;
  WeightIndex query_bias = kNoWeight;  // of kLayer; none = zeros
  WeightIndex key_bias = kNoWeight;
  bool by_head = false;        // each head has a weight and a bias of its own, one after the other
  float weight_offset = 0.0f;  // as in NormOp
  float eps = 1e-6f;
  HeadShape heads;
  bool values = false;
  bool plain = false;  // query and key heads are normalised without a weight
};

// For each row of `qkv` the sum of squares of all query heads of the rank, and that of its key
// heads, in two columns of `out`.
struct SquaresOp {
  static constexpr std::string_view kName = "sums of squares";
  Buffer qkv = Buffer::kNone;
  Buffer out = Buffer::kNone;
  HeadShape heads;
};

// RMSNorm over all query heads, and over all key heads, of all ranks, in place. `squares` are the
// sums over the ranks, of so many elements.
struct WidthNormOp {
  static constexpr std::string_view kName = "norm over all heads";
  Buffer qkv = Buffer::kNone;
  Buffer squares = Buffer::kNone;
  WeightIndex query_weight = kNoWeight;  // of the rank's heads
  WeightIndex key_weight = kNoWeight;
  std::uint32_t query_elements = 0;
  std::uint32_t key_elements = 0;
  float eps = 1e-6f;
  HeadShape heads;
};

// Bounds `width` columns of `buffer` by -limit and limit.
struct ClampOp {
  static constexpr std::string_view kName = "clamp";
  Buffer buffer = Buffer::kNone;
  float limit = 0.0f;
  std::uint32_t width = 0;
};

// Multiplies a query by 1 + rate * ln(1 + floor((position + first) / period)).
struct QueryGrowth {
  float rate = 0.0f;  // 0: there is no such factor
  std::uint32_t period = 1;
  std::uint32_t first = 0;
};

// Rotates the first `dim` dimensions of ropes[rope] of each query and key head of `qkv` in place;
// nothing if `rope` is kNoRope. Then queries grow. Writes K and V to Program::caches[cache]. If
// `writes` is not set, nothing is written, and `qkv` holds only queries unless `keys` is set.
inline constexpr std::int32_t kNoRope = -1;
struct RopeKvWriteOp {
  static constexpr std::string_view kName = "RoPE and K/V write";
  Buffer qkv = Buffer::kNone;
  std::uint32_t cache = 0;
  std::int32_t rope = 0;
  HeadShape heads;
  bool writes = true;
  bool keys = true;
  QueryGrowth growth;
};

// Attention with linear biases (arXiv:2108.12409): slope * (position of the key - that of the
// query) joins each product after its scale.
struct Alibi {
  std::vector<float> slopes;  // of each query head of the rank; empty: there are no biases
  // Not 0: the bias is this factor times slope * key's position, where slope, position and product
  // are rounded to bfloat16.
  float rounded_scale = 0.0f;
  bool operator==(const Alibi&) const = default;
};

// out = attention of the queries in `qkv` over Program::caches[cache].
struct AttentionOp {
  static constexpr std::string_view kName = "attention";
  Buffer qkv = Buffer::kNone;
  Buffer out = Buffer::kNone;
  std::uint32_t cache = 0;
  std::uint32_t window = 0;  // positions that a query sees; 0 = all
  std::uint32_t chunk = 0;   // a query sees its own chunk of so many positions; 0 = all
  // A query sees the positions after it too, up to the last row of its segment. With a window it
  // sees those at a distance below `window`, before and after it.
  bool both_ways = false;
  float scale = 1.0f;    // of the products of queries and keys
  float softcap = 0.0f;  // c: a scaled product x becomes c * tanh(x / c); 0 = none
  HeadShape heads;
  // A number for each query head of the rank, or none. It joins the softmax as the score of a
  // position whose value is zero.
  WeightIndex sinks = kNoWeight;
  Alibi alibi;
};

// out = activation(gate) * up, `width` columns each.
struct GatedActivationOp {
  static constexpr std::string_view kName = "gated activation";
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  Activation activation = Activation::kSilu;
  std::uint32_t width = 0;
};

// out = activation(in), `width` columns.
struct ActivationOp {
  static constexpr std::string_view kName = "activation";
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  Activation activation = Activation::kGelu;
  std::uint32_t width = 0;
};

// out = xIELU(in) (arXiv:2411.13010), `width` columns. With p = softplus(positive) and
// n = 0.5 + softplus(negative), two weights that are one number each:
//
//   x > 0:  p x^2 + 0.5 x
//   else:   n (e^min(x, -1e-6) - 1 - x) + 0.5 x
struct XieluOp {
  static constexpr std::string_view kName = "xIELU";
  static constexpr float kBeta = 0.5f;
  static constexpr float kLeast = -1e-6f;
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  WeightIndex positive = kNoWeight;
  WeightIndex negative = kNoWeight;
  std::uint32_t width = 0;
};

// How the experts of a row are chosen from its scores s.
struct Routing {
  enum class Kind : std::uint8_t {
    kSoftmax,  // the weights are softmax(s)
    kSigmoid,  // the weights are sigmoid(s)
    // The best is chosen again and again, without those before. With its score m, its weight is its
    // part of the softmax over the scores s left with (m - s) / max(|s|, m) <= mixer_distance. No
    // other member counts.
    kSparseMixer,
  };
  Kind kind = Kind::kSoftmax;
  std::uint32_t experts = 0;
  std::uint32_t chosen = 0;  // the largest weights + choice_bias
  WeightIndex choice_bias = kNoWeight;
  // Experts form groups of equal size. Only experts of the best `kept_groups` can be chosen. A
  // group is as good as the sum of its `group_best` best experts.
  std::uint32_t groups = 1;
  std::uint32_t kept_groups = 1;
  std::uint32_t group_best = 1;
  bool renormalized = false;             // weights are divided by the sum of those chosen
  float scale = 1.0f;                    // multiplies the weights
  float score_scale = 1.0f;              // multiplies the scores
  float mixer_distance = 0.0f;           // of kSparseMixer
  WeightIndex expert_scale = kNoWeight;  // multiplies the weight of each expert; none = ones
};

struct Expert {
  WeightIndex gate_up = kNoWeight;  // gate rows, then up rows; none: another rank has the expert
  WeightIndex down = kNoWeight;
  WeightIndex gate_up_bias = kNoWeight;  // only with a BoundedGate
  WeightIndex down_bias = kNoWeight;     // the same
};

// The gate of gpt-oss in place of an activation: with g = min(gate, limit) and
// u = clamp(up, -limit, limit), the result is (u + 1) * g * sigmoid(alpha * g).
struct BoundedGate {
  float alpha = 1.0f;
  float limit = 0.0f;  // 0: there is no such gate
  bool IsSet() const { return limit > 0.0f; }
};

// out = sum of weight * down(activation(gate(in)) * up(in)) over the chosen experts of each row, in
// ascending order of expert; or out += that. A bounded gate replaces the activation and the
// product. With `weigh_inputs` the weight multiplies the expert's input instead of its result.
struct ExpertsOp {
  static constexpr std::string_view kName = "experts";
  Buffer in = Buffer::kNone;
  Buffer scores = Buffer::kNone;
  Buffer out = Buffer::kNone;
  bool accumulate = false;
  Routing routing;
  Activation activation = Activation::kSilu;
  std::uint32_t width = 0;  // rows of gate and of up on this rank
  std::vector<Expert> experts;
  BoundedGate bounded_gate;
  bool weigh_inputs = false;
};

// Multiplies each row of `buffer` by sigmoid(gate).
struct GateRowsOp {
  static constexpr std::string_view kName = "gate of rows";
  Buffer buffer = Buffer::kNone;
  Buffer gate = Buffer::kNone;
};

// out = (RMSNorm of each `size` columns of `in` + out) * scale. `in` is overwritten.
struct GroupNormOp {
  static constexpr std::string_view kName = "norm of groups";
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  WeightIndex weight = kNoWeight;  // [size]
  std::uint32_t size = 0;          // divides the width
  float eps = 1e-6f;
  float scale = 1.0f;
};

// Multiplies `width` columns of `buffer` by those of `by` from `first` on.
struct MultiplyOp {
  static constexpr std::string_view kName = "product of columns";
  Buffer buffer = Buffer::kNone;
  Buffer by = Buffer::kNone;
  std::uint32_t first = 0;
  std::uint32_t width = 0;
};

// Multiplies `buffer` by a weight that is one number.
struct ScaleOp {
  static constexpr std::string_view kName = "learned scale";
  Buffer buffer = Buffer::kNone;
  WeightIndex weight = kNoWeight;
};

// buffer *= sigmoid(gate), `width` columns each.
struct GateOp {
  static constexpr std::string_view kName = "gate";
  Buffer buffer = Buffer::kNone;
  Buffer gate = Buffer::kNone;
  std::uint32_t width = 0;
};

// Most inputs that a channel of a convolution sums.
inline constexpr std::uint32_t kMostTaps = 16;

// What a recurrent layer keeps of each sequence on this rank, in float32: the last inputs of its
// convolution, and a matrix for each head.
struct StateShape {
  std::uint32_t channels = 0;  // of the convolution
  std::uint32_t inputs = 0;    // kept of each channel
  std::uint32_t heads = 0;
  std::uint32_t key_dim = 0;    // rows of a matrix
  std::uint32_t value_dim = 0;  // columns of it

  std::uint64_t Bytes() const {
    const std::uint64_t matrices = std::uint64_t{heads} * key_dim * value_dim;
    return (std::uint64_t{channels} * inputs + matrices) * sizeof(float);
  }
};

// A gated delta net (arXiv:2412.06464), computed token by token in float32. `shape` is that of
// Program::states[state]. A row of `in` holds q and k of the key heads, v and z of the value heads,
// then b and a, which have one column for each value head. For each row, with S and the inputs of
// the convolution from the state of the sequence:
//
//   q, k, v = silu(causal depthwise convolution of q, k, v)                          in `mixed`
//   q = q / |q| / sqrt(key_dim),  k = k / |k|
//   S = S * exp(-exp(decay) * softplus(a + decay_bias))
//   S = S + k (sigmoid(b) * (v - S^T k))^T
//   out = norm(S^T q) * silu(z)                            an RMS norm of each head
struct DeltaNetOp {
  static constexpr std::string_view kName = "gated delta net";
  Buffer in = Buffer::kNone;
  Buffer mixed = Buffer::kNone;
  Buffer out = Buffer::kNone;
  std::uint32_t state = 0;
  std::uint32_t key_heads = 0;  // divides shape.heads, the value heads
  StateShape shape;
  WeightIndex convolution = kNoWeight;  // [channels, shape.inputs + 1], the newest input last
  WeightIndex decay = kNoWeight;        // [heads]
  WeightIndex decay_bias = kNoWeight;   // [heads]
  WeightIndex norm = kNoWeight;         // [value_dim]
  float eps = 1e-6f;                    // of the norm

  std::uint32_t Group() const { return shape.heads / key_heads; }  // value heads per key head
  std::uint32_t KeyWidth() const { return key_heads * shape.key_dim; }
  std::uint32_t ValueWidth() const { return shape.heads * shape.value_dim; }
  // Where z, b and a begin in `in`; q, k and v are the channels of the convolution.
  std::uint32_t GateColumn() const { return shape.channels; }
  std::uint32_t BetaColumn() const { return GateColumn() + ValueWidth(); }
  std::uint32_t DecayColumn() const { return BetaColumn() + shape.heads; }
};

// A gated short convolution (LFM2), computed token by token in float32. A row of `in` holds b, c
// and x, shape.channels columns each. With the inputs before it from the state of the sequence,
// which is Program::states[state] and has no heads:
//
//   out = c * (causal depthwise convolution of b * x, + bias)            b * x in `mixed`
struct ShortConvOp {
  static constexpr std::string_view kName = "short convolution";
  Buffer in = Buffer::kNone;
  Buffer mixed = Buffer::kNone;
  Buffer out = Buffer::kNone;
  std::uint32_t state = 0;
  StateShape shape;
  WeightIndex convolution = kNoWeight;  // [channels, shape.inputs + 1], the newest input last
  WeightIndex bias = kNoWeight;         // [channels]; none = zeros
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

// x = scale * x, then cap * tanh(x / cap) if there is a cap. Follows the product of the head.
struct ScaleLogitsOp {
  static constexpr std::string_view kName = "scale logits";
  Buffer buffer = Buffer::kNone;
  float scale = 1.0f;
  float softcap = 0.0f;  // 0 = none
};

// Gathers all ranks' shares of `buffer` for the host.
struct AllGatherOp {
  static constexpr std::string_view kName = "all-gather";
  Buffer buffer = Buffer::kNone;
};

// Multi-head latent attention (shard/model/latent_attention.h). Normalises the latent, rotates the
// RoPE key and the last dimensions of each query head, and writes latent and RoPE key to
// Program::caches[cache].
struct LatentWriteOp {
  static constexpr std::string_view kName = "latent write";
  Buffer queries = Buffer::kNone;  // for each head nope_dim dimensions, then rope_dim
  Buffer latent = Buffer::kNone;   // latent_dim dimensions, then rope_dim
  WeightIndex weight = kNoWeight;  // of the RMS norm
  float eps = 1e-6f;
  std::uint32_t cache = 0;
  std::int32_t rope = 0;
  bool interleaved = true;  // RoPE rotates dimensions 2i and 2i + 1, not i and i + rope_dim / 2
  std::uint32_t heads = 0;  // of this rank
  std::uint32_t nope_dim = 0;
  std::uint32_t rope_dim = 0;
  std::uint32_t latent_dim = 0;
};

// For each head: out = in * matrix^T for the first `in_dim` dimensions, which become `out_dim`. The
// `rest` dimensions after them are copied.
struct HeadLinearOp {
  static constexpr std::string_view kName = "linear of heads";
  Buffer in = Buffer::kNone;
  Buffer out = Buffer::kNone;
  std::uint32_t in_dim = 0;
  std::uint32_t out_dim = 0;
  std::uint32_t rest = 0;
  std::vector<WeightIndex> matrices;  // of each head
};

using Op = std::variant<EmbedOp, PositionsOp, NormOp, LinearOp, HeadNormOp, RopeKvWriteOp,
                        AttentionOp, GatedActivationOp, ActivationOp, ExpertsOp, GateRowsOp,
                        AllReduceOp, SelectRowsOp, ScaleLogitsOp, AllGatherOp, GroupNormOp,
                        MultiplyOp, ScaleOp, LatentWriteOp, HeadLinearOp, GateOp, DeltaNetOp,
                        SquaresOp, WidthNormOp, ClampOp, XieluOp, ShortConvOp>;

// The name of an operation, for messages.
inline std::string_view NameOf(const Op& op) {
  return std::visit([](const auto& typed) { return typed.kName; }, op);
}

struct Program {
  std::vector<Op> body;  // once per Execute, ends with a SelectRowsOp
  // Once per Logits, over some rows of kSelected. Empty: these rows are the result.
  std::vector<Op> head;
  std::array<std::uint32_t, kBufferCount> widths{};

  RankShare part;
  std::vector<CacheShape> caches;  // K/V caches; layers may share one
  std::uint32_t kv_window = 0;     // of KV group 1 (kv_groups.h); 0: all caches are in group 0
  std::uint32_t vocabulary = 0;    // of all ranks, without padding
  std::vector<RopeSpec> ropes;     // the distinct ones of all layers

  std::vector<StateShape> states;  // of the recurrent layers
  // The bytes of all states of one sequence.
  std::uint64_t StateBytes() const {
    std::uint64_t bytes = 0;
    for (const StateShape& state : states) bytes += state.Bytes();
    return bytes;
  }

  std::uint32_t KvGroups() const { return kv_window > 0 ? 2 : 1; }
  // How K and V depend on the length of the text.
  struct Lengths {
    LengthRule rule = LengthRule::kNone;
    std::uint32_t original = 0;
  };
  Lengths TextLengths() const {
    for (const RopeSpec& rope : ropes) {
      if (!rope.DependsOnLength()) continue;
      const bool dynamic = rope.type == RopeType::kDynamic;
      return {dynamic ? LengthRule::kPromptLength : LengthRule::kRecompute,
              static_cast<std::uint32_t>(rope.original_max_position)};
    }
    return {};
  }

  // Whether this process has neither operations nor weights of the model (--engine transformers).
  bool ComputedElsewhere() const { return body.empty(); }

  // The width of a row that Logits returns.
  std::uint32_t OutputWidth() const { return head.empty() ? Width(Buffer::kSelected) : vocabulary; }

  std::uint32_t Width(Buffer buffer) const { return widths[static_cast<std::size_t>(buffer)]; }
};

}  // namespace penstock::shard
