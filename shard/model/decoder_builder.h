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
// has one for that layer of the first decoder layer. Matrices are split over the ranks by heads, by
// the columns of the MLP and by the vocabulary.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "shard/model/model_spec.h"
#include "shard/model/program.h"
#include "shard/model/rank_share.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

struct BuiltProgram {
  Program program;
  WeightPlan weights;
};

// Whether the checkpoint has a tensor with this name.
using HasTensor = std::function<bool(std::string_view name)>;

// Runs spec.build for one rank.
BuiltProgram BuildProgram(const ModelSpec& spec, const RankShare& part, const HasTensor& has);

class DecoderBuilder {
 public:
  DecoderBuilder(const ModelSpec& spec, const RankShare& part, const HasTensor& has);

  const ModelSpec& spec() const { return spec_; }

  // ---- names ----

  // The names of the decoder begin with `prefix`; or with nothing, if the checkpoint has the tensor
  // `probe` only without it.
  void Prefix(const std::string& prefix, const std::string& probe);
  // Tensors of the checkpoint with names that end so are not weights.
  void Ignore(const std::string& suffix) { built_.weights.ignored_suffixes.push_back(suffix); }
  // Calls `layer` for each decoder layer. Inside, names begin with "`name`.<index>.".
  void Layers(const std::string& name, const std::function<void(std::uint32_t)>& layer);

  // ---- the decoder's ends ----

  // Looks up the tokens. `table` is a whole name after the prefix, `head` a whole name. The two are
  // one matrix if config.json ties them or says nothing and the checkpoint has no `head`.
  void Embedding(const std::string& table, const std::string& head);
  // Logits of the rows that the batch needs, from the last norm. Ends the decoder.
  void Head();

  // ---- blocks ----

  // Norm of the residual stream, for the next Qkv or MLP.
  void RmsNorm(const std::string& name);
  void LayerNorm(const std::string& name);  // with a bias
  // Queries, keys and values from three matrices.
  void Qkv(const std::string& q, const std::string& k, const std::string& v);
  // The same from one matrix that holds query, key and value of the first head, then of the next.
  void QkvByHead(const std::string& name);
  // RMSNorm of each query head and of each key head.
  void HeadNorm(const std::string& query, const std::string& key);
  // Rotates queries and keys. Writes K and V to the cache.
  void Rope();
  // Causal attention with a scale of 1 / sqrt(head_dim). A query sees `window` positions; 0 = all.
  void Attention(std::uint32_t window);
  // The product that ends the attention branch.
  void AttentionOutput(const std::string& name);
  // down(silu(gate(x)) * up(x)).
  void GatedMlp(const std::string& gate, const std::string& up, const std::string& down);
  // down(activation(up(x))).
  void Mlp(const std::string& up, Activation activation, const std::string& down);
  // Adds the branch to the residual stream. Attention and MLP without a call between them are
  // parallel: both read the same residual stream, and their sum is the branch.
  void AddToResidual();

 private:
  friend BuiltProgram BuildProgram(const ModelSpec&, const RankShare&, const HasTensor&);

  // `rows` of a matrix whose stored shape is [stored_rows, hidden].
  struct RowSlice {
    std::string name;
    std::uint64_t stored_rows;
    Range rows;
  };

  void SetWidths();
  void Add(const Op& op) { ops_->push_back(op); }
  void AllReduce(Buffer buffer);
  // A linear layer whose outputs are the slices, one after the other. Reads kNormed.
  LinearOp RowLinear(const std::string& label, Buffer out, const std::vector<RowSlice>& slices);
  // A linear layer whose columns are divided among the ranks, so their results must be summed.
  // The branch begins with the result or adds it.
  void ColumnLinear(const std::string& name, Buffer in, std::uint64_t stored_columns,
                    Range columns);

  std::string Name(const std::string& tensor) const { return prefix_ + scope_ + tensor; }
  bool HasBias(const std::string& name) const;
  WeightIndex AddTarget(WeightTarget target);
  WeightIndex Vector(const std::string& tensor, std::uint64_t size);
  WeightIndex VocabularyMatrix(const std::string& label, const std::string& tensor);
  Range Heads() const;    // dimensions of this rank's query heads
  Range KvHeads() const;  // of its key heads

  const ModelSpec& spec_;
  const RankShare& part_;
  const HasTensor& has_;
  BuiltProgram built_;
  std::vector<Op>* ops_ = &built_.program.body;
  std::string prefix_;
  std::string layers_name_;  // "layers", once inside Layers
  std::string scope_;        // "layers.3." inside Layers, else ""
  std::uint32_t layer_ = 0;
  std::string head_tensor_;
  WeightIndex embedding_ = kNoWeight;
  bool tied_ = false;
  Buffer branch_ = Buffer::kNone;  // what the next norm adds to the residual stream
  bool branch_begun_ = false;      // kBranch holds a result that AddToResidual has not taken
};

}  // namespace penstock::shard
