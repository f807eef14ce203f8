#include "shard/model/decoder_builder.h"

#include <cmath>
#include <utility>
#include <variant>

namespace penstock::shard {

BuiltProgram BuildProgram(const ModelSpec& spec, const RankShare& part, const HasTensor& has) {
  DecoderBuilder builder(spec, part, has);
  spec.build(builder);
  return std::move(builder.built_);
}

DecoderBuilder::DecoderBuilder(const ModelSpec& spec, const RankShare& part, const HasTensor& has)
    : spec_(spec), part_(part), has_(has) {
  Program& program = built_.program;
  program.part = part;
  program.layers = spec.layers;
  program.head_dim = spec.head_dim;
  program.vocabulary = spec.vocabulary;
  program.rope = spec.rope;
  SetWidths();
  // Old versions of the transformers library saved these buffers beside the weights.
  for (const char* suffix : {".rotary_emb.inv_freq", ".attn.bias", ".masked_bias"}) Ignore(suffix);
}

void DecoderBuilder::SetWidths() {
  const auto width = [this](Buffer buffer, std::uint32_t value) {
    built_.program.widths[static_cast<std::size_t>(buffer)] = value;
  };
  for (Buffer buffer : {Buffer::kHidden, Buffer::kNormed, Buffer::kBranch, Buffer::kSelected}) {
    width(buffer, spec_.hidden);
  }
  width(Buffer::kQkv, (part_.heads + 2 * part_.kv_heads) * spec_.head_dim);
  width(Buffer::kAttention, part_.heads * spec_.head_dim);
  width(Buffer::kMlp, part_.intermediate);
  width(Buffer::kLogits, part_.vocabulary_padded);
}

// ---- names ----

void DecoderBuilder::Prefix(const std::string& prefix, const std::string& probe) {
  const bool bare = !has_(prefix + probe) && has_(probe);
  prefix_ = bare ? "" : prefix;
}

void DecoderBuilder::Layers(const std::string& name,
                            const std::function<void(std::uint32_t)>& layer) {
  layers_name_ = name;
  for (layer_ = 0; layer_ < spec_.layers; ++layer_) {
    scope_ = name + "." + std::to_string(layer_) + ".";
    layer(layer_);
  }
  scope_.clear();
}

bool DecoderBuilder::HasBias(const std::string& name) const {
  return has_(prefix_ + layers_name_ + ".0." + name + ".bias");
}

// ---- the decoder's ends ----

void DecoderBuilder::Embedding(const std::string& table, const std::string& head) {
  std::string tensor = prefix_ + table;
  tied_ = spec_.tied_head.value_or(!has_(head));
  if (tied_) built_.weights.ignored.insert(head);  // a copy
  // Some files hold the shared matrix under the head's name alone.
  if (tied_ && !has_(tensor) && has_(head)) tensor = head;
  head_tensor_ = head;
  embedding_ = VocabularyMatrix("embedding", tensor);
  Add(EmbedOp{.out = Buffer::kHidden, .table = embedding_});
  AllReduce(Buffer::kHidden);
}

void DecoderBuilder::Head() {
  Add(SelectRowsOp{.in = Buffer::kNormed, .out = Buffer::kSelected});
  ops_ = &built_.program.head;
  Add(LinearOp{.in = Buffer::kSelected,
               .out = Buffer::kLogits,
               .weight = tied_ ? embedding_ : VocabularyMatrix("head", head_tensor_)});
  if (part_.world > 1) Add(AllGatherOp{Buffer::kLogits});
}

// ---- blocks ----

void DecoderBuilder::RmsNorm(const std::string& name) {
  Add(NormOp{.in = Buffer::kHidden,
             .out = Buffer::kNormed,
             .add = std::exchange(branch_, Buffer::kNone),
             .weight = Vector(Name(name + ".weight"), spec_.hidden),
             .eps = spec_.norm_eps});
}

void DecoderBuilder::LayerNorm(const std::string& name) {
  RmsNorm(name);
  NormOp& op = std::get<NormOp>(ops_->back());
  op.kind = NormKind::kLayer;
  op.bias = Vector(Name(name + ".bias"), spec_.hidden);
}

void DecoderBuilder::Qkv(const std::string& q, const std::string& k, const std::string& v) {
  const std::uint64_t dim = spec_.head_dim;
  Add(RowLinear("qkv", Buffer::kQkv,
                {{q, spec_.heads * dim, Heads()},
                 {k, spec_.kv_heads * dim, KvHeads()},
                 {v, spec_.kv_heads * dim, KvHeads()}}));
}

void DecoderBuilder::QkvByHead(const std::string& name) {
  const std::uint64_t dim = spec_.head_dim;
  std::vector<RowSlice> slices;
  for (std::uint64_t part = 0; part < 3; ++part) {
    for (std::uint64_t i = 0; i < part_.heads; ++i) {
      const std::uint64_t head = part_.first_head + i;
      slices.push_back({name, 3 * spec_.heads * dim, {(3 * head + part) * dim, dim}});
    }
  }
  Add(RowLinear("qkv", Buffer::kQkv, slices));
}

void DecoderBuilder::HeadNorm(const std::string& query, const std::string& key) {
  Add(HeadNormOp{.qkv = Buffer::kQkv,
                 .query_weight = Vector(Name(query + ".weight"), spec_.head_dim),
                 .key_weight = Vector(Name(key + ".weight"), spec_.head_dim),
                 .eps = spec_.norm_eps});
}

void DecoderBuilder::Rope() { Add(RopeKvWriteOp{.qkv = Buffer::kQkv, .layer = layer_}); }

void DecoderBuilder::Attention(std::uint32_t window) {
  Add(AttentionOp{.qkv = Buffer::kQkv,
                  .out = Buffer::kAttention,
                  .layer = layer_,
                  .window = window,
                  .scale = 1.0f / std::sqrt(static_cast<float>(spec_.head_dim))});
}

void DecoderBuilder::AttentionOutput(const std::string& name) {
  ColumnLinear(name, Buffer::kAttention, std::uint64_t{spec_.heads} * spec_.head_dim, Heads());
}

void DecoderBuilder::GatedMlp(const std::string& gate, const std::string& up,
                              const std::string& down) {
  const Range mine{part_.first_intermediate, part_.intermediate};
  built_.program.widths[static_cast<std::size_t>(Buffer::kMlpUp)] = 2 * part_.intermediate;
  LinearOp op = RowLinear("gate_up", Buffer::kMlpUp,
                          {{gate, spec_.intermediate, mine}, {up, spec_.intermediate, mine}});
  op.gated = true;
  Add(op);
  Add(GatedActivationOp{.in = Buffer::kMlpUp, .out = Buffer::kMlp});
  ColumnLinear(down, Buffer::kMlp, spec_.intermediate, mine);
}

void DecoderBuilder::Mlp(const std::string& up, Activation activation, const std::string& down) {
  const Range mine{part_.first_intermediate, part_.intermediate};
  built_.program.widths[static_cast<std::size_t>(Buffer::kMlpUp)] = part_.intermediate;
  Add(RowLinear("up", Buffer::kMlpUp, {{up, spec_.intermediate, mine}}));
  Add(ActivationOp{.in = Buffer::kMlpUp, .out = Buffer::kMlp, .activation = activation});
  ColumnLinear(down, Buffer::kMlp, spec_.intermediate, mine);
}

void DecoderBuilder::AddToResidual() {
  AllReduce(Buffer::kBranch);
  branch_begun_ = false;
  branch_ = Buffer::kBranch;
}

// ---- operations ----

void DecoderBuilder::AllReduce(Buffer buffer) {
  if (part_.world > 1) Add(AllReduceOp{buffer});
}

LinearOp DecoderBuilder::RowLinear(const std::string& label, Buffer out,
                                   const std::vector<RowSlice>& slices) {
  WeightTarget weight{scope_ + label, 0, spec_.hidden, false, {}};
  WeightTarget bias{scope_ + label + "_bias", 0, 1, true, {}};
  for (const RowSlice& slice : slices) {
    weight.parts.push_back({Name(slice.name + ".weight"),
                            {slice.stored_rows, spec_.hidden},
                            slice.rows,
                            {0, spec_.hidden},
                            weight.rows});
    bias.parts.push_back(
        {Name(slice.name + ".bias"), {slice.stored_rows}, slice.rows, {0, 1}, bias.rows});
    weight.rows += slice.rows.count;
    bias.rows += slice.rows.count;
  }
  LinearOp op{.in = Buffer::kNormed, .out = out, .weight = AddTarget(std::move(weight))};
  if (HasBias(slices.front().name)) op.bias = AddTarget(std::move(bias));
  return op;
}

void DecoderBuilder::ColumnLinear(const std::string& name, Buffer in, std::uint64_t stored_columns,
                                  Range columns) {
  WeightTarget target{scope_ + name, spec_.hidden, columns.count, false, {}};
  target.parts.push_back(
      {Name(name + ".weight"), {spec_.hidden, stored_columns}, {0, spec_.hidden}, columns, 0});
  LinearOp op{.in = in,
              .out = Buffer::kBranch,
              .weight = AddTarget(std::move(target)),
              .accumulate = std::exchange(branch_begun_, true)};
  // The bias joins the sum over the ranks once.
  if (part_.rank == 0 && HasBias(name)) op.bias = Vector(Name(name + ".bias"), spec_.hidden);
  Add(op);
}

// ---- weights ----

Range DecoderBuilder::Heads() const {
  const std::uint64_t dim = spec_.head_dim;
  return {part_.first_head * dim, part_.heads * dim};
}

Range DecoderBuilder::KvHeads() const {
  const std::uint64_t dim = spec_.head_dim;
  return {part_.first_kv_head * dim, part_.kv_heads * dim};
}

WeightIndex DecoderBuilder::AddTarget(WeightTarget target) {
  built_.weights.targets.push_back(std::move(target));
  return static_cast<WeightIndex>(built_.weights.targets.size()) - 1;
}

WeightIndex DecoderBuilder::Vector(const std::string& tensor, std::uint64_t size) {
  WeightTarget target{tensor, size, 1, true, {}};
  target.parts.push_back({tensor, {size}, {0, size}, {0, 1}, 0});
  return AddTarget(std::move(target));
}

WeightIndex DecoderBuilder::VocabularyMatrix(const std::string& label, const std::string& tensor) {
  WeightTarget target{label, part_.vocabulary_padded, spec_.hidden, false, {}};
  target.parts.push_back({tensor,
                          {spec_.vocabulary, spec_.hidden},
                          {part_.first_vocabulary, part_.vocabulary},
                          {0, spec_.hidden},
                          0});
  return AddTarget(std::move(target));
}

}  // namespace penstock::shard
