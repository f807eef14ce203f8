#include "shard/model/program_builder.h"

#include <cmath>
#include <initializer_list>
#include <utility>

namespace penstock::shard {
namespace {

class Builder {
 public:
  Builder(const ModelSpec& spec, const Partition& part) : spec_(spec), part_(part) {}

  BuiltProgram Build() {
    SetScalars();
    const std::int32_t embedding = VocabularyMatrix("embedding", spec_.embedding_tensor);
    Add({.kind = OpKind::kEmbed, .out = Buffer::kHidden, .weight = embedding});
    AllReduce(Buffer::kHidden);
    Buffer branch = Buffer::kNone;  // the first norm has nothing to add
    for (layer_ = 0; layer_ < spec_.layers; ++layer_) {
      AttentionBlock(branch);
      branch = Buffer::kBranch;
      MlpBlock();
    }
    Norm("final_norm", spec_.prefix + "norm.weight", branch);
    Add({.kind = OpKind::kSelectRows, .in = Buffer::kNormed, .out = Buffer::kSelected});
    const std::int32_t head =
        spec_.tied_head() ? embedding : VocabularyMatrix("head", spec_.head_tensor);
    ops_ = &built_.program.head;
    Add({.kind = OpKind::kLinear, .in = Buffer::kSelected, .out = Buffer::kLogits, .weight = head});
    if (part_.world > 1) Add({.kind = OpKind::kAllGather, .in = Buffer::kLogits});
    return std::move(built_);
  }

 private:
  void SetScalars() {
    Program& program = built_.program;
    program.part = part_;
    program.layers = spec_.layers;
    program.head_dim = spec_.head_dim;
    program.vocabulary = spec_.vocabulary;
    program.norm_eps = spec_.norm_eps;
    program.attention_scale = 1.0f / std::sqrt(static_cast<float>(spec_.head_dim));
    program.rope = spec_.rope;
    const auto width = [&program](Buffer buffer, std::uint32_t value) {
      program.widths[static_cast<std::size_t>(buffer)] = value;
    };
    for (Buffer buffer : {Buffer::kHidden, Buffer::kNormed, Buffer::kBranch, Buffer::kSelected}) {
      width(buffer, spec_.hidden);
    }
    width(Buffer::kQkv, (part_.heads + 2 * part_.kv_heads) * spec_.head_dim);
    width(Buffer::kAttention, part_.heads * spec_.head_dim);
    width(Buffer::kGateUp, 2 * part_.intermediate);
    width(Buffer::kMlp, part_.intermediate);
    width(Buffer::kLogits, part_.vocabulary_padded);
  }

  void AttentionBlock(Buffer branch) {
    Norm("input_norm", Name("input_layernorm.weight"), branch);
    const std::uint64_t dim = spec_.head_dim;
    const Range q{part_.first_head * dim, part_.heads * dim};
    const Range kv{part_.first_kv_head * dim, part_.kv_heads * dim};
    const std::initializer_list<RowSlice> slices = {{"self_attn.q_proj", spec_.heads * dim, q},
                                                    {"self_attn.k_proj", spec_.kv_heads * dim, kv},
                                                    {"self_attn.v_proj", spec_.kv_heads * dim, kv}};
    Add({.kind = OpKind::kLinear,
         .in = Buffer::kNormed,
         .out = Buffer::kQkv,
         .weight = RowMatrix("qkv", slices),
         .bias = spec_.qkv_bias ? RowBias("qkv_bias", slices) : kNoWeight});
    if (spec_.qk_norm) {
      Add({.kind = OpKind::kHeadNorm,
           .in = Buffer::kQkv,
           .weight = Vector("query_norm", Name("self_attn.q_norm.weight"), dim),
           .weight2 = Vector("key_norm", Name("self_attn.k_norm.weight"), dim)});
    }
    Add({.kind = OpKind::kRopeKvWrite, .in = Buffer::kQkv, .layer = layer_});
    Add({.kind = OpKind::kAttention,
         .in = Buffer::kQkv,
         .out = Buffer::kAttention,
         .layer = layer_,
         .window = spec_.windows[layer_]});
    ColumnLinear("output", "self_attn.o_proj", Buffer::kAttention, spec_.heads * dim, q,
                 spec_.output_bias);
  }

  void MlpBlock() {
    Norm("post_attention_norm", Name("post_attention_layernorm.weight"), Buffer::kBranch);
    const Range mine{part_.first_intermediate, part_.intermediate};
    const std::initializer_list<RowSlice> slices = {{"mlp.gate_proj", spec_.intermediate, mine},
                                                    {"mlp.up_proj", spec_.intermediate, mine}};
    Add({.kind = OpKind::kLinear,
         .in = Buffer::kNormed,
         .out = Buffer::kGateUp,
         .weight = RowMatrix("gate_up", slices),
         .bias = spec_.gate_up_bias ? RowBias("gate_up_bias", slices) : kNoWeight});
    Add({.kind = OpKind::kGatedActivation, .in = Buffer::kGateUp, .out = Buffer::kMlp});
    ColumnLinear("down", "mlp.down_proj", Buffer::kMlp, spec_.intermediate, mine, spec_.down_bias);
  }

  // ---- operations ----

  void Add(const Op& op) { ops_->push_back(op); }

  void Norm(const std::string& name, const std::string& tensor, Buffer add) {
    Add({.kind = OpKind::kNorm,
         .in = Buffer::kHidden,
         .out = Buffer::kNormed,
         .add = add,
         .weight = Vector(name, tensor, spec_.hidden)});
  }

  void AllReduce(Buffer buffer) {
    if (part_.world > 1) Add({.kind = OpKind::kAllReduce, .in = buffer});
  }

  // Columns of the weight are split, so each rank has a part of the sum; the bias joins it once.
  void ColumnLinear(const std::string& name, const std::string& tensor, Buffer in,
                    std::uint64_t stored_columns, Range columns, bool bias) {
    WeightTarget target{Label(name), spec_.hidden, columns.count, false, {}};
    target.parts.push_back(
        {Name(tensor + ".weight"), {spec_.hidden, stored_columns}, {0, spec_.hidden}, columns, 0});
    Op op{.kind = OpKind::kLinear,
          .in = in,
          .out = Buffer::kBranch,
          .weight = AddTarget(std::move(target))};
    if (bias && part_.rank == 0) {
      op.bias = Vector(name + "_bias", Name(tensor + ".bias"), spec_.hidden);
    }
    Add(op);
    AllReduce(Buffer::kBranch);
  }

  // ---- weights ----

  struct RowSlice {
    const char* tensor;
    std::uint64_t stored_rows;
    Range rows;
  };

  std::string Name(const std::string& tensor) const {
    return spec_.prefix + "layers." + std::to_string(layer_) + "." + tensor;
  }
  std::string Label(const std::string& name) const {
    return "layers." + std::to_string(layer_) + "." + name;
  }

  std::int32_t AddTarget(WeightTarget target) {
    built_.weights.targets.push_back(std::move(target));
    return static_cast<std::int32_t>(built_.weights.targets.size()) - 1;
  }

  std::int32_t Vector(const std::string& name, const std::string& tensor, std::uint64_t size) {
    WeightTarget target{Label(name), size, 1, true, {}};
    target.parts.push_back({tensor, {size}, {0, size}, {0, 1}, 0});
    return AddTarget(std::move(target));
  }

  // Rows of several matrices, one below the other.
  std::int32_t RowMatrix(const std::string& name, std::initializer_list<RowSlice> slices) {
    WeightTarget target{Label(name), 0, spec_.hidden, false, {}};
    for (const RowSlice& slice : slices) {
      target.parts.push_back({Name(slice.tensor + std::string(".weight")),
                              {slice.stored_rows, spec_.hidden},
                              slice.rows,
                              {0, spec_.hidden},
                              target.rows});
      target.rows += slice.rows.count;
    }
    return AddTarget(std::move(target));
  }

  std::int32_t RowBias(const std::string& name, std::initializer_list<RowSlice> slices) {
    WeightTarget target{Label(name), 0, 1, true, {}};
    for (const RowSlice& slice : slices) {
      target.parts.push_back({Name(slice.tensor + std::string(".bias")),
                              {slice.stored_rows},
                              slice.rows,
                              {0, 1},
                              target.rows});
      target.rows += slice.rows.count;
    }
    return AddTarget(std::move(target));
  }

  std::int32_t VocabularyMatrix(const std::string& name, const std::string& tensor) {
    WeightTarget target{name, part_.vocabulary_padded, spec_.hidden, false, {}};
    target.parts.push_back({tensor,
                            {spec_.vocabulary, spec_.hidden},
                            {part_.first_vocabulary, part_.vocabulary},
                            {0, spec_.hidden},
                            0});
    return AddTarget(std::move(target));
  }

  const ModelSpec& spec_;
  const Partition& part_;
  BuiltProgram built_;
  std::vector<Op>* ops_ = &built_.program.body;
  std::uint32_t layer_ = 0;
};

}  // namespace

BuiltProgram BuildProgram(const ModelSpec& spec, const Partition& part) {
  return Builder(spec, part).Build();
}

}  // namespace penstock::shard
