#include "shard/model/decoder_builder.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "shard/model/kv_groups.h"

namespace penstock::shard {

BuiltProgram BuildProgram(const ModelSpec& spec, const RankShare& part, const HasTensor& has,
                          const AcceptTarget& accept) {
  DecoderBuilder builder(spec, part, has, accept);
  spec.build(builder);
  // The texts of vectors take the blocks of one step, so a second table would save nothing.
  if (spec.task == Task::kGenerate) AssignKvGroups(builder.built_.program, spec.max_position);
  return std::move(builder.built_);
}

DecoderBuilder::DecoderBuilder(const ModelSpec& spec, const RankShare& part, const HasTensor& has,
                               const AcceptTarget& accept)
    : spec_(spec), part_(part), has_(has), accept_(accept), mlp_width_(spec.intermediate) {
  Program& program = built_.program;
  program.part = part;
  program.vocabulary = spec.vocabulary;
  built_.weights.format = spec.format;
  SetWidths();
  SetHeads({spec.heads, spec.kv_heads, spec.head_dim, spec.head_dim});
  // Old versions of the transformers library saved these buffers beside the weights.
  for (const char* suffix : {".rotary_emb.inv_freq", ".attn.bias", ".masked_bias"}) Ignore(suffix);
}

void DecoderBuilder::SetWidths() {
  for (Buffer buffer : {Buffer::kHidden, Buffer::kNormed, Buffer::kBranch, Buffer::kSelected}) {
    Widen(buffer, spec_.hidden);
  }
  if (spec_.task == Task::kGenerate) Widen(Buffer::kLogits, part_.vocabulary_padded);
}

// ---- names ----

void DecoderBuilder::Prefix(const std::vector<std::string>& prefixes, const std::string& probe) {
  if (wrapped_) {
    const std::string outer = "language_model.";
    const bool flat = has_("model." + outer + probe);
    prefix_ = flat ? "model." + outer : outer + prefixes.front();
    return;
  }
  const auto found = std::find_if(prefixes.begin(), prefixes.end(),
                                  [&](const std::string& prefix) { return has_(prefix + probe); });
  prefix_ = found == prefixes.end() ? prefixes.front() : *found;
}

void DecoderBuilder::IgnoreLayersAfter(const std::string& name, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    IgnorePrefix(prefix_ + name + "." + std::to_string(spec_.layers + i) + ".");
  }
}

void DecoderBuilder::Layers(const std::string& name,
                            const std::function<void(std::uint32_t)>& layer) {
  layers_name_ = name;
  for (layer_ = 0; layer_ < spec_.layers && !refused_; ++layer_) {
    scope_ = name + "." + std::to_string(layer_) + ".";
    layer(layer_);
  }
  scope_.clear();
}

bool DecoderBuilder::HasBias(const std::string& name) const {
  // Layers may be of several kinds, and a quantised checkpoint has no tensor `.weight`.
  for (std::uint32_t i = 0; i < spec_.layers; ++i) {
    if (has_(prefix_ + layers_name_ + "." + std::to_string(i) + "." + name + ".bias")) return true;
  }
  return false;
}

// ---- the decoder's ends ----

void DecoderBuilder::Embedding(const std::string& table, const std::string& head, float scale) {
  Embed(table, head, Buffer::kHidden, scale);
}

void DecoderBuilder::Embed(const std::string& table, const std::string& head, Buffer out,
                           float scale) {
  std::string tensor = prefix_ + table;
  // A head in the file counts, also where config.json says that it is the embedding. Some files
  // hold the shared matrix under the head's name alone.
  const std::string inner = "language_model." + head;
  head_tensor_ = wrapped_ && has_(inner) ? inner : head;
  tied_ = spec_.tied_head.value_or(true) && !(has_(head_tensor_) && has_(tensor));
  if (tied_ && !has_(tensor) && has_(head_tensor_)) tensor = head_tensor_;
  embedding_ = VocabularyMatrix("embedding", tensor, built_.program.Width(out));
  Add(EmbedOp{.out = out, .table = embedding_, .scale = scale});
  AllReduce(out);
}

void DecoderBuilder::LearnedPositions(const std::string& table, std::uint32_t offset) {
  const std::uint64_t rows = std::uint64_t{spec_.max_position} + offset;
  Add(PositionsOp{.out = Buffer::kHidden, .table = Table(table, rows), .offset = offset});
}

void DecoderBuilder::PartEmbedding(const std::string& table, std::uint32_t rows) {
  Add(PositionsOp{.out = Buffer::kHidden, .table = Table(table, rows), .parts = rows});
}

void DecoderBuilder::Head(float scale, float softcap) {
  Add(SelectRowsOp{.in = Buffer::kNormed, .out = Buffer::kSelected});
  if (spec_.task != Task::kGenerate) return IgnoreHead();
  ops_ = &built_.program.head;
  Add(LinearOp{.in = Buffer::kSelected,
               .out = Buffer::kLogits,
               .weight = tied_ ? embedding_
                               : VocabularyMatrix("head", head_tensor_,
                                                  built_.program.Width(Buffer::kSelected)),
               .bias = HeadBias()});
  if (scale != 1.0f || softcap != 0.0f) Add(ScaleLogitsOp{Buffer::kLogits, scale, softcap});
  if (part_.world > 1) Add(AllGatherOp{Buffer::kLogits});
}

void DecoderBuilder::IgnoreHead() {
  if (has_(head_tensor_)) IgnorePrefix(head_tensor_);
  if (!HeadBiasName().empty()) IgnorePrefix(HeadBiasName());
  for (const HeadLayer& layer : spec_.class_layers) {
    IgnorePrefix(layer.name + ".");
    if (!layer.norm.empty()) IgnorePrefix(layer.norm + ".");
  }
  IgnorePrefix("score.");
}

// ---- blocks ----

// A norm of the residual stream adds the branch first.
void DecoderBuilder::AddNorm(Buffer buffer, NormKind kind, const std::string& name) {
  NormOp op{.in = buffer, .out = Buffer::kNormed, .kind = kind, .eps = spec_.norm_eps};
  if (buffer == Buffer::kHidden) {
    op.add = std::exchange(branch_, Buffer::kNone);
    op.add_scale = residual_scale_;
  } else if (buffer == Buffer::kBranch) {
    op.add = std::exchange(side_, Buffer::kNone);
  }
  if (kind == NormKind::kRms) {
    op.weight = Vector(Name(name + ".weight"), spec_.hidden);
    op.weight_offset = norm_offset_;
  } else if (kind == NormKind::kLayer) {
    op.weight = VectorIfStored(Name(name + ".weight"), spec_.hidden);
    op.weight_offset = norm_offset_;
    op.bias = VectorIfStored(Name(name + ".bias"), spec_.hidden);
  }
  Add(op);
}

void DecoderBuilder::BranchRmsNorm(const std::string& name) {
  ReduceBranch();
  AddNorm(target_, NormKind::kRms, name);
  std::get<NormOp>(ops_->back()).out = target_;
}

void DecoderBuilder::StreamLayerNorm(const std::string& name) {
  AddNorm(Buffer::kHidden, NormKind::kLayer, name);
  std::get<NormOp>(ops_->back()).out = Buffer::kHidden;
  NoNorm();
}

void DecoderBuilder::RouterNorm(const std::string& tensor) {
  AddNorm(Buffer::kHidden, NormKind::kCopy, "");
  auto& norm = std::get<NormOp>(ops_->back());
  norm.kind = NormKind::kRms;
  norm.weight = Vector(Name(tensor), spec_.hidden);
}

void DecoderBuilder::NoNorm() { AddNorm(Buffer::kHidden, NormKind::kCopy, ""); }

void DecoderBuilder::SetHeads(const HeadShape& all) {
  all_heads_ = heads_ = all;
  heads_.query_heads = all.query_heads / part_.world;
  // As in MakeRankShare.
  heads_.kv_heads = std::max(1u, all.kv_heads / part_.world);
  first_kv_head_ =
      static_cast<std::uint32_t>(std::uint64_t{part_.rank} * all.kv_heads / part_.world);
}

void DecoderBuilder::AddQkv(const std::vector<RowSlice>& slices) {
  Widen(Buffer::kQkv, heads_.QkvWidth());
  Add(RowLinear("qkv", Buffer::kQkv, slices));
}

void DecoderBuilder::Qkv(const std::string& q, const std::string& k, const std::string& v) {
  AddQkv(Rows().Separate(q, k, v));
}

void DecoderBuilder::Queries(const std::string& q) {
  Widen(Buffer::kQkv, heads_.QueryWidth());
  Add(RowLinear("q", Buffer::kQkv, Rows().Queries(q)));
}

void DecoderBuilder::FusedQkv(const std::string& name) { AddQkv(Rows().Fused(name)); }

void DecoderBuilder::QkvByHead(const std::string& name) { AddQkv(Rows().ByHead(name)); }

void DecoderBuilder::ClampQkv(float limit) {
  Add(ClampOp{.buffer = Buffer::kQkv, .limit = limit, .width = heads_.QkvWidth()});
}

void DecoderBuilder::HeadNorm(const std::string& query, const std::string& key, bool values) {
  const auto weight = [this](const std::string& name) {
    return name.empty() ? kNoWeight : Vector(Name(name + ".weight"), heads_.key_dim);
  };
  const WeightIndex of_queries = weight(query);
  Add(HeadNormOp{.qkv = Buffer::kQkv,
                 .query_weight = of_queries,
                 .key_weight = weight(key),
                 .weight_offset = norm_offset_,
                 .eps = spec_.norm_eps,
                 .heads = heads_,
                 .values = values});
}

std::int32_t DecoderBuilder::AddRope(const RopeSpec& rope) {
  std::vector<RopeSpec>& ropes = built_.program.ropes;
  const auto found = std::find(ropes.begin(), ropes.end(), rope);
  const auto index = static_cast<std::int32_t>(found - ropes.begin());
  if (found == ropes.end()) ropes.push_back(rope);
  return index;
}

void DecoderBuilder::AddRopeKvWrite(std::int32_t rope) {
  std::vector<CacheShape>& caches = built_.program.caches;
  cache_ = caches_[layer_] = static_cast<std::uint32_t>(caches.size());
  caches.push_back({heads_.kv_heads, heads_.key_dim, heads_.value_dim});
  Add(RopeKvWriteOp{.qkv = Buffer::kQkv, .cache = cache_, .rope = rope, .heads = heads_});
}

void DecoderBuilder::Rope(const RopeSpec& rope) { AddRopeKvWrite(AddRope(rope)); }

void DecoderBuilder::RopeQueries(const RopeSpec& rope, std::uint32_t layer) {
  cache_ = caches_.at(layer);
  Add(RopeKvWriteOp{.qkv = Buffer::kQkv,
                    .cache = cache_,
                    .rope = AddRope(rope),
                    .heads = heads_,
                    .writes = false,
                    .keys = false});
}

void DecoderBuilder::NoRope() { AddRopeKvWrite(kNoRope); }

void DecoderBuilder::Rotate(const RopeSpec& rope) {
  Add(RopeKvWriteOp{.qkv = Buffer::kQkv, .rope = AddRope(rope), .heads = heads_, .writes = false});
}

void DecoderBuilder::GrowQueries(const QueryGrowth& growth) {
  std::get<RopeKvWriteOp>(ops_->back()).growth = growth;
}

void DecoderBuilder::Attention(std::uint32_t window, std::optional<float> scale, float softcap) {
  Widen(Buffer::kAttention, heads_.OutputWidth());
  Add(AttentionOp{.qkv = Buffer::kQkv,
                  .out = Buffer::kAttention,
                  .cache = cache_,
                  .window = window,
                  .scale = scale.value_or(1.0f / std::sqrt(static_cast<float>(heads_.key_dim))),
                  .softcap = softcap,
                  .heads = heads_});
}

void DecoderBuilder::AttentionBothWays(std::uint32_t window) {
  Attention(window);
  std::get<AttentionOp>(ops_->back()).both_ways = true;
}

void DecoderBuilder::Sinks(const std::string& name) {
  const std::uint64_t mine = heads_.query_heads;
  WeightTarget target{scope_ + name, mine, 1, true, {}};
  target.parts.push_back(
      {Name(name), {all_heads_.query_heads}, {part_.rank * mine, mine}, {0, 1}, 0});
  std::get<AttentionOp>(ops_->back()).sinks = AddTarget(std::move(target));
}

void DecoderBuilder::LinearBiases(const std::vector<float>& slopes, float rounded_scale) {
  const auto first = slopes.begin() + part_.rank * heads_.query_heads;
  std::get<AttentionOp>(ops_->back()).alibi = {{first, first + heads_.query_heads}, rounded_scale};
}

void DecoderBuilder::Chunk(std::uint32_t positions) {
  std::get<AttentionOp>(ops_->back()).chunk = positions;
}

void DecoderBuilder::AttentionOutput(const std::string& name) {
  const std::uint64_t columns = heads_.OutputWidth();
  ColumnLinear(name, Buffer::kAttention, all_heads_.OutputWidth(), {part_.rank * columns, columns});
}

void DecoderBuilder::GatedUp(const std::vector<RowSlice>& slices, const std::string& down,
                             Activation activation) {
  const Range mine = MlpColumns();
  const auto width = static_cast<std::uint32_t>(mine.count);
  Widen(Buffer::kMlpUp, 2 * width);
  Widen(Buffer::kMlp, width);
  LinearOp op = RowLinear("gate_up", Buffer::kMlpUp, slices);
  op.gated = true;
  Add(op);
  Add(GatedActivationOp{
      .in = Buffer::kMlpUp, .out = Buffer::kMlp, .activation = activation, .width = width});
  ColumnLinear(down, Buffer::kMlp, mlp_width_, mine);
}

void DecoderBuilder::GatedMlp(const std::string& gate, const std::string& up,
                              const std::string& down, Activation activation) {
  const Range mine = MlpColumns();
  GatedUp({{gate, mlp_width_, mine}, {up, mlp_width_, mine}}, down, activation);
}

void DecoderBuilder::FusedGatedMlp(const std::string& gate_up, const std::string& down,
                                   Activation activation) {
  const std::uint64_t all = mlp_width_;
  const Range mine = MlpColumns();
  GatedUp({{gate_up, 2 * all, mine}, {gate_up, 2 * all, {all + mine.first, mine.count}}}, down,
          activation);
}

void DecoderBuilder::Router(const std::string& name, std::uint32_t experts) {
  Widen(Buffer::kRouter, experts);
  Add(RowLinear("router", Buffer::kRouter, {{name, experts, {0, experts}}}));
}

Range DecoderBuilder::MlpUp(const std::string& up, Buffer out) {
  const Range mine = MlpColumns();
  Widen(out, static_cast<std::uint32_t>(mine.count));
  Widen(Buffer::kMlp, static_cast<std::uint32_t>(mine.count));
  Add(RowLinear("up", out, {{up, mlp_width_, mine}}));
  return mine;
}

void DecoderBuilder::Mlp(const std::string& up, Activation activation, const std::string& down) {
  const Range mine = MlpUp(up, Buffer::kMlpUp);
  Add(ActivationOp{.in = Buffer::kMlpUp,
                   .out = Buffer::kMlp,
                   .activation = activation,
                   .width = static_cast<std::uint32_t>(mine.count)});
  ColumnLinear(down, Buffer::kMlp, mlp_width_, mine);
}

void DecoderBuilder::XieluMlp(const std::string& up, const std::string& activation,
                              const std::string& down) {
  const Range mine = MlpUp(up, Buffer::kXieluUp);
  const WeightIndex positive = Vector(Name(activation + ".alpha_p"), 1);
  const WeightIndex negative = Vector(Name(activation + ".alpha_n"), 1);
  Add(XieluOp{.in = Buffer::kXieluUp,
              .out = Buffer::kMlp,
              .positive = positive,
              .negative = negative,
              .width = static_cast<std::uint32_t>(mine.count)});
  ColumnLinear(down, Buffer::kMlp, mlp_width_, mine);
}

void DecoderBuilder::GatedQkv(const std::string& q, const std::string& k, const std::string& v) {
  AddQkv(Rows().BesideGates(q, k, v));
  Widen(Buffer::kAttentionGate, heads_.OutputWidth());
  Add(RowLinear("attention_gate", Buffer::kAttentionGate, Rows().Gates(q)));
}

void DecoderBuilder::AttentionGateFrom(const std::string& name) {
  Widen(Buffer::kAttentionGate, heads_.OutputWidth());
  Add(RowLinear("attention_gate", Buffer::kAttentionGate, Rows().Queries(name)));
}

void DecoderBuilder::AttentionGate() {
  Add(GateOp{
      .buffer = Buffer::kAttention, .gate = Buffer::kAttentionGate, .width = heads_.OutputWidth()});
}

void DecoderBuilder::ReduceBranch() {
  if (!std::exchange(reduced_, true)) AllReduce(target_);
}

void DecoderBuilder::AddToResidual() {
  ReduceBranch();
  branch_begun_ = reduced_ = false;
  branch_ = Buffer::kBranch;
}

void DecoderBuilder::BeginSideBranch() {
  ReduceBranch();
  Widen(Buffer::kSideBranch, spec_.hidden);
  target_ = Buffer::kSideBranch;
  branch_begun_ = reduced_ = false;
}

void DecoderBuilder::JoinSideBranch() {
  ReduceBranch();
  side_ = std::exchange(target_, Buffer::kBranch);
}

void DecoderBuilder::ScaleStream(const std::string& tensor) {
  AddNorm(Buffer::kHidden, NormKind::kCopy, "");
  std::get<NormOp>(ops_->back()).out = Buffer::kHidden;
  Add(ScaleOp{.buffer = Buffer::kHidden, .weight = Vector(Name(tensor), 1)});
}

// ---- operations ----

LinearOp DecoderBuilder::RowLinear(const std::string& label, Buffer out,
                                   const std::vector<RowSlice>& slices) {
  WeightTarget weight{scope_ + label, 0, spec_.hidden, false, {}};
  WeightTarget bias{scope_ + label + "_bias", 0, 1, true, {}};
  for (const RowSlice& slice : slices) {
    weight.parts.push_back({Name(slice.name + ".weight"),
                            {slice.stored_rows, spec_.hidden},
                            slice.rows,
                            {0, spec_.hidden},
                            weight.rows,
                            transposed_});
    bias.parts.push_back(
        {Name(slice.name + ".bias"), {slice.stored_rows}, slice.rows, {0, 1}, bias.rows});
    weight.parts.back().row_step = bias.parts.back().row_step = slice.step;
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
  target.parts.push_back({Name(name + ".weight"),
                          {spec_.hidden, stored_columns},
                          {0, spec_.hidden},
                          columns,
                          0,
                          transposed_});
  LinearOp op{.in = in,
              .out = target_,
              .weight = AddTarget(std::move(target)),
              .accumulate = std::exchange(branch_begun_, true)};
  // The bias joins the sum over the ranks once.
  if (part_.rank == 0 && HasBias(name)) op.bias = Vector(Name(name + ".bias"), spec_.hidden);
  Add(op);
}

// ---- weights ----

WeightIndex DecoderBuilder::Table(const std::string& table, std::uint64_t rows) {
  WeightTarget target{table, rows, spec_.hidden, false, {}};
  target.parts.push_back({Name(table), {rows, spec_.hidden}, {0, rows}, {0, spec_.hidden}, 0});
  return AddTarget(std::move(target));
}

WeightIndex DecoderBuilder::AddTarget(WeightTarget target) {
  if (accept_ && !refused_) refused_ = !accept_(built_.weights, target);
  built_.weights.targets.push_back(std::move(target));
  return static_cast<WeightIndex>(built_.weights.targets.size()) - 1;
}

WeightIndex DecoderBuilder::Vector(const std::string& tensor, std::uint64_t size) {
  WeightTarget target{tensor, size, 1, true, {}};
  target.parts.push_back({tensor, {size}, {0, size}, {0, 1}, 0});
  return AddTarget(std::move(target));
}

WeightIndex DecoderBuilder::VectorIfStored(const std::string& tensor, std::uint64_t size) {
  return has_(tensor) ? Vector(tensor, size) : kNoWeight;
}

WeightIndex DecoderBuilder::VocabularyMatrix(const std::string& label, const std::string& tensor,
                                             std::uint64_t columns) {
  WeightTarget target{label, part_.vocabulary_padded, columns, false, {}};
  target.parts.push_back({tensor,
                          {spec_.vocabulary, columns},
                          {part_.first_vocabulary, part_.vocabulary},
                          {0, columns},
                          0});
  return AddTarget(std::move(target));
}

std::string DecoderBuilder::HeadBiasName() const {
  constexpr std::string_view kWeight = ".weight";
  if (!head_tensor_.ends_with(kWeight)) return "";
  const std::string name = head_tensor_.substr(0, head_tensor_.size() - kWeight.size()) + ".bias";
  return has_(name) ? name : "";
}

WeightIndex DecoderBuilder::HeadBias() {
  const std::string name = HeadBiasName();
  if (name.empty()) return kNoWeight;
  WeightTarget target{"head_bias", part_.vocabulary_padded, 1, true, {}};
  target.parts.push_back(
      {name, {spec_.vocabulary}, {part_.first_vocabulary, part_.vocabulary}, {0, 1}, 0});
  return AddTarget(std::move(target));
}

}  // namespace penstock::shard
