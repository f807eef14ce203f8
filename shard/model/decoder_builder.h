// The toolkit with which the files of shard/model/architectures declare a decoder. Each call
// appends operations to the Program and the tensors that they need to the WeightPlan, so the two
// cannot disagree. Calls are made in the order of computation:
//
//   b.RmsNorm("input_layernorm");                        // of the residual stream
//   b.Qkv("q_proj", "k_proj", "v_proj");
//   b.Rope();
//   b.Attention(window);
//   b.AttentionOutput("o_proj");
//   b.AddToResidual();
//
// Names are those of the checkpoint without ".weight". A linear layer has a bias if the checkpoint
// has one in the first decoder layer that has this linear layer. Matrices are split over the ranks
// by heads, by the columns of the MLP and by the vocabulary.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shard/model/model_spec.h"
#include "shard/model/program.h"
#include "shard/model/qkv_rows.h"
#include "shard/model/rank_share.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

struct BuiltProgram {
  Program program;
  WeightPlan weights;
};

// Whether the checkpoint has a tensor with this name.
using HasTensor = std::function<bool(std::string_view name)>;

// Gets each target when the builder adds it, and the plan before it. After the first `false` the
// builder adds no more layers and experts, and the result is of no use: a config.json that asks for
// millions of tensors costs no more than what the checkpoint has.
using AcceptTarget = std::function<bool(const WeightPlan& plan, const WeightTarget& target)>;

// Runs spec.build for one rank. `accept` may be empty.
BuiltProgram BuildProgram(const ModelSpec& spec, const RankShare& part, const HasTensor& has,
                          const AcceptTarget& accept = {});

class DecoderBuilder {
 public:
  DecoderBuilder(const ModelSpec& spec, const RankShare& part, const HasTensor& has,
                 const AcceptTarget& accept = {});

  const ModelSpec& spec() const { return spec_; }
  const RankShare& part() const { return part_; }

  // ---- names ----

  // The names of the decoder begin with one of `prefixes`: the first with which the checkpoint has
  // the tensor `probe`, or the first of all.
  void Prefix(const std::vector<std::string>& prefixes, const std::string& probe);
  // The decoder is the text part of a larger model: "model.language_model." or "language_model."
  // may be before its names, in place of "model." or before it, and before that of the head.
  void SetWrapped() { wrapped_ = true; }
  // Tensors of the checkpoint with names that end so are not weights of the decoder.
  void Ignore(const std::string& suffix) { built_.weights.ignored_suffixes.push_back(suffix); }
  // The same with names that begin so: other parts of a model, such as its vision tower.
  void IgnorePrefix(const std::string& prefix) {
    built_.weights.ignored_prefixes.push_back(prefix);
  }
  // Whether the checkpoint has this tensor, with the prefix.
  bool Has(const std::string& tensor) const { return has_(prefix_ + tensor); }
  // Tensors of the `count` layers after the last one are not weights of the decoder.
  void IgnoreLayersAfter(const std::string& name, std::uint32_t count);
  // Calls `layer` for each decoder layer. Inside, names begin with "`name`.<index>.".
  void Layers(const std::string& name, const std::function<void(std::uint32_t)>& layer);

  // ---- the decoder's ends ----

  // Looks up the tokens. `table` is a whole name after the prefix, `head` a whole name. The two are
  // one matrix if the checkpoint has no `head` and config.json does not forbid it. The head has a
  // bias if the checkpoint has one. The rows are multiplied by `scale`. projected_words.h has
  // embeddings of another width.
  void Embedding(const std::string& table, const std::string& head, float scale = 1.0f);
  // Adds row position + offset of a table with spec.max_position + offset rows.
  void LearnedPositions(const std::string& table, std::uint32_t offset);
  // Adds sines and cosines of position + offset (PositionsOp).
  void Sinusoids(std::uint32_t offset) {
    Add(PositionsOp{.out = Buffer::kHidden, .offset = offset});
  }
  // Adds the row of a token's part of the text, of a table with `rows` rows.
  void PartEmbedding(const std::string& table, std::uint32_t rows);
  // Logits of the rows that the batch needs, from the last norm. Ends the decoder. They are
  // multiplied by `scale`, then bounded by a softcap unless it is 0 (ScaleLogitsOp). Without
  // Task::kGenerate there are no logits: the rows of the last norm are the result.
  void Head(float scale = 1.0f, float softcap = 0.0f);

  // ---- blocks ----

  // From here on the weights of norms are stored as offsets from this value.
  void SetNormOffset(float offset) { norm_offset_ = offset; }
  // From here on AddToResidual multiplies the branch.
  void SetResidualScale(float scale) { residual_scale_ = scale; }
  // Norm of the residual stream, for the next Qkv or MLP.
  void RmsNorm(const std::string& name) { AddNorm(Buffer::kHidden, NormKind::kRms, name); }
  void LayerNorm(const std::string& name) {
    AddNorm(Buffer::kHidden, NormKind::kLayer, name);
  }  // weight and bias if the checkpoint has them
  // Norm of the branch before it is added.
  void BranchRmsNorm(const std::string& name);
  // Norm of the residual stream that becomes the residual stream, and what the next MLP or Qkv
  // reads.
  void StreamLayerNorm(const std::string& name);
  // What the next Qkv or MLP reads is the residual stream as it is.
  void NoNorm();
  // From here on attention has these heads, those of all ranks, and not those of spec().
  void SetHeads(const HeadShape& all);
  // From here on an MLP has this width, counted over all ranks, and not spec().intermediate.
  void SetMlpWidth(std::uint32_t all) { mlp_width_ = all; }
  // Queries, keys and values from three matrices.
  void Qkv(const std::string& q, const std::string& k, const std::string& v);
  // Only queries: the layer reads the cache of another one.
  void Queries(const std::string& q);
  // The same from one matrix: all queries, then all keys, then all values.
  void FusedQkv(const std::string& name);
  // Matrices are stored as [inputs, outputs] from here on.
  void SetTransposed() { transposed_ = true; }
  // The same from one matrix that holds the query heads of the first K/V head, its key and its
  // value, then those of the next.
  void QkvByHead(const std::string& name);
  // The same from one matrix of equal blocks: query heads, then their values, then their keys.
  void QkvByBlock(const std::string& name, std::uint32_t blocks) {
    AddQkv(Rows().ByBlock(name, blocks));
  }
  // From here on the rows of queries and keys that spec().rope rotates are stored as pairs of
  // neighbours.
  void SetInterleaved() { interleaved_ = spec_.rope.dim; }
  // Bounds queries, keys and values by -limit and limit.
  void ClampQkv(float limit);
  // RMSNorm of each query head and of each key head, unless `key` is "". With `values` each value
  // head is normalised without a weight. head_norms.h has other norms of heads.
  void HeadNorm(const std::string& query, const std::string& key, bool values = false);
  // Rotates queries and keys as spec().rope, or as `rope`. Writes K and V to a cache of the layer.
  void Rope() { Rope(spec_.rope); }
  void Rope(const RopeSpec& rope);
  void NoRope();  // writes K and V only
  // Rotates queries and keys without writing K and V, for models that norm heads after RoPE. NoRope
  // writes them later.
  void Rotate(const RopeSpec& rope);
  // Multiplies the queries of the Rope or NoRope before.
  void GrowQueries(const QueryGrowth& growth);
  // Rotates what Queries gives. Attention reads the cache of `layer`, an earlier one.
  void RopeQueries(const RopeSpec& rope, std::uint32_t layer);
  // Causal attention. A query sees `window` positions; 0 = all. The scale of the products is
  // 1 / sqrt(key_dim) if it is not given; `softcap` as in AttentionOp.
  void Attention(std::uint32_t window, std::optional<float> scale = {}, float softcap = 0.0f);
  // The same in both directions.
  void AttentionBothWays(std::uint32_t window);
  // Sinks of the attention before (AttentionOp).
  void Sinks(const std::string& name);
  // Linear biases of the attention before: the slopes of the heads of all ranks, and
  // Alibi::rounded_scale.
  void LinearBiases(const std::vector<float>& slopes, float rounded_scale = 0.0f);
  // In the attention before a query sees only its chunk of so many positions.
  void Chunk(std::uint32_t positions);
  // The product that ends the attention branch.
  void AttentionOutput(const std::string& name);
  // down(activation(gate(x)) * up(x)).
  void GatedMlp(const std::string& gate, const std::string& up, const std::string& down,
                Activation activation = Activation::kSilu);
  // The same with gate and up in one matrix, the gate first.
  void FusedGatedMlp(const std::string& gate_up, const std::string& down,
                     Activation activation = Activation::kSilu);
  // The scores of `experts` experts.
  void Router(const std::string& name, std::uint32_t experts);
  // down(activation(up(x))).
  void Mlp(const std::string& up, Activation activation, const std::string& down);
  // The same with an xIELU, whose weights are "`activation`.alpha_p" and "`activation`.alpha_n".
  void XieluMlp(const std::string& up, const std::string& activation, const std::string& down);
  // What follows computes a second branch, which reads the same residual stream.
  void BeginSideBranch();
  // The next BranchRmsNorm adds the second branch first.
  void JoinSideBranch();
  // As RmsNorm, with the whole name of the weight, to which no offset is added.
  void RouterNorm(const std::string& tensor);
  // Queries, keys and values, and a gate for each dimension of the queries: `q` holds the queries
  // of the first head, then its gates, then the next head.
  void GatedQkv(const std::string& q, const std::string& k, const std::string& v);
  // The same gates from a matrix of their own.
  void AttentionGateFrom(const std::string& name);
  // Multiplies the result of attention by the sigmoid of those gates.
  void AttentionGate();
  // Adds the branch to the residual stream. Attention and MLP without a call between them are
  // parallel: both read the same residual stream, and their sum is the branch.
  void AddToResidual();
  // Multiplies the residual stream by a tensor of one number.
  void ScaleStream(const std::string& tensor);

 private:
  friend BuiltProgram BuildProgram(const ModelSpec&, const RankShare&, const HasTensor&,
                                   const AcceptTarget&);
  friend class DeltaNetBuilder;
  friend class ExpertsBuilder;
  friend class HeadNormsBuilder;
  friend class LatentAttentionBuilder;
  friend class PerLayerInputsBuilder;
  friend class ProjectedWordsBuilder;
  friend class ShortConvBuilder;

  void SetWidths();
  void Embed(const std::string& table, const std::string& head, Buffer out, float scale);
  void Add(const Op& op) { ops_->push_back(op); }
  void AllReduce(Buffer buffer) {
    if (part_.world > 1) Add(AllReduceOp{buffer});
  }
  void AddNorm(Buffer buffer, NormKind kind, const std::string& name);
  // The product of the queries, keys and values.
  void AddQkv(const std::vector<RowSlice>& slices);
  QkvRows Rows() const {
    return {all_heads_, heads_, part_.rank * heads_.query_heads, first_kv_head_, interleaved_};
  }
  // The first product of an MLP without a gate. Gives the columns of this rank.
  Range MlpUp(const std::string& up, Buffer out);
  void GatedUp(const std::vector<RowSlice>& slices, const std::string& down, Activation activation);
  // The sum of the branch over the ranks, if it is not made yet.
  void ReduceBranch();
  // A linear layer whose outputs are the slices, one after the other. Reads kNormed.
  LinearOp RowLinear(const std::string& label, Buffer out, const std::vector<RowSlice>& slices);
  // A linear layer whose columns are divided among the ranks, so their results must be summed.
  // The branch begins with the result or adds it.
  void ColumnLinear(const std::string& name, Buffer in, std::uint64_t stored_columns,
                    Range columns);

  std::string Name(const std::string& tensor) const { return prefix_ + scope_ + tensor; }
  bool HasBias(const std::string& name) const;
  WeightIndex AddTarget(WeightTarget target);
  // The buffer gets at least this width.
  void Widen(Buffer buffer, std::uint32_t width) {
    std::uint32_t& widest = built_.program.widths[static_cast<std::size_t>(buffer)];
    widest = std::max(widest, width);
  }
  void IgnoreHead();
  WeightIndex Table(const std::string& table, std::uint64_t rows);
  WeightIndex Vector(const std::string& tensor, std::uint64_t size);
  WeightIndex VectorIfStored(const std::string& tensor, std::uint64_t size);
  WeightIndex VocabularyMatrix(const std::string& label, const std::string& tensor,
                               std::uint64_t columns);
  std::string HeadBiasName() const;  // empty if the checkpoint has none
  WeightIndex HeadBias();
  Range MlpColumns() const {  // the share of this rank
    const std::uint64_t share = mlp_width_ / part_.world;
    return {part_.rank * share, share};
  }
  std::int32_t AddRope(const RopeSpec& rope);  // its index in Program::ropes
  // Adds a cache for K and V of the present layer.
  void AddRopeKvWrite(std::int32_t rope);

  const ModelSpec& spec_;
  const RankShare& part_;
  const HasTensor& has_;
  const AcceptTarget accept_;
  bool refused_ = false;  // accept_ said no
  BuiltProgram built_;
  std::vector<Op>* ops_ = &built_.program.body;
  bool wrapped_ = false;
  std::string prefix_;
  std::string layers_name_;  // "layers", once inside Layers
  std::string scope_;        // "layers.3." inside Layers, else ""
  std::uint32_t layer_ = 0;
  HeadShape all_heads_;  // of all ranks
  HeadShape heads_;      // of this rank
  std::uint32_t first_kv_head_ = 0;
  std::uint32_t interleaved_ = 0;                  // rows of a head
  std::uint32_t cache_ = 0;                        // of the present layer
  std::map<std::uint32_t, std::uint32_t> caches_;  // by layer
  std::uint32_t mlp_width_ = 0;
  std::string head_tensor_;
  WeightIndex embedding_ = kNoWeight;
  bool tied_ = false;
  float norm_offset_ = 0.0f;
  float residual_scale_ = 1.0f;
  bool transposed_ = false;
  Buffer target_ = Buffer::kBranch;  // the branch in the making
  Buffer side_ = Buffer::kNone;      // what the next BranchRmsNorm adds
  bool reduced_ = false;             // target_ is summed over the ranks
  Buffer branch_ = Buffer::kNone;    // what the next norm adds to the residual stream
  bool branch_begun_ = false;        // target_ holds a result that AddToResidual has not taken
};

}  // namespace penstock::shard
