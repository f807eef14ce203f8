#include "shard/model/latent_attention.h"

#include <utility>
#include <vector>

namespace penstock::shard {

class LatentAttentionBuilder {
 public:
  LatentAttentionBuilder(DecoderBuilder& b, const std::string& name, const LatentHeads& heads)
      : b_(b),
        name_(name + "."),
        heads_(heads),
        all_(b.spec_.heads),
        mine_(b.part_.heads),
        first_(b.part_.first_head) {}

  void Build() {
    AddLatent();
    AddQueries();
    AddWrite();
    AddAttention();
  }

 private:
  static constexpr float kNormEps = 1e-6f;  // whatever config.json says of other norms

  std::uint32_t QueryDim() const { return heads_.nope + heads_.rope; }
  std::uint32_t KeyDim() const { return heads_.latent + heads_.rope; }

  // out = rows of a matrix * in + bias, if the checkpoint has a bias.
  void Linear(const std::string& tensor, Buffer in, std::uint64_t columns, Buffer out,
              std::uint64_t stored_rows, Range rows) {
    const std::string name = name_ + tensor;
    WeightTarget weight{b_.scope_ + name, rows.count, columns, false, {}};
    weight.parts.push_back(
        {b_.Name(name + ".weight"), {stored_rows, columns}, rows, {0, columns}, 0});
    LinearOp op{.in = in, .out = out, .weight = b_.AddTarget(std::move(weight))};
    if (b_.HasBias(name)) {
      WeightTarget bias{b_.scope_ + name + "_bias", rows.count, 1, true, {}};
      bias.parts.push_back({b_.Name(name + ".bias"), {stored_rows}, rows, {0, 1}, 0});
      op.bias = b_.AddTarget(std::move(bias));
    }
    b_.Widen(out, static_cast<std::uint32_t>(rows.count));
    b_.Add(op);
  }

  void AddLatent() {
    Linear("kv_a_proj_with_mqa", Buffer::kNormed, b_.spec_.hidden, Buffer::kLatent, KeyDim(),
           {0, KeyDim()});
  }

  void AddQueries() {
    const std::uint64_t stored = std::uint64_t{all_} * QueryDim();
    const Range rows{std::uint64_t{first_} * QueryDim(), std::uint64_t{mine_} * QueryDim()};
    if (heads_.query_latent == 0) {
      return Linear("q_proj", Buffer::kNormed, b_.spec_.hidden, Buffer::kQkv, stored, rows);
    }
    const std::uint64_t width = heads_.query_latent;
    Linear("q_a_proj", Buffer::kNormed, b_.spec_.hidden, Buffer::kQueryDown, width, {0, width});
    b_.Widen(Buffer::kQueryLatent, heads_.query_latent);
    b_.Add(NormOp{.in = Buffer::kQueryDown,
                  .out = Buffer::kQueryLatent,
                  .weight = b_.Vector(b_.Name(name_ + "q_a_layernorm.weight"), width),
                  .eps = kNormEps});
    Linear("q_b_proj", Buffer::kQueryLatent, width, Buffer::kQkv, stored, rows);
  }

  void AddWrite() {
    std::vector<CacheShape>& caches = b_.built_.program.caches;
    cache_ = static_cast<std::uint32_t>(caches.size());
    caches.push_back(
        {.kv_heads = 1, .key_dim = KeyDim(), .value_dim = heads_.latent, .values_in_keys = true});
    b_.Add(
        LatentWriteOp{.queries = Buffer::kQkv,
                      .latent = Buffer::kLatent,
                      .weight = b_.Vector(b_.Name(name_ + "kv_a_layernorm.weight"), heads_.latent),
                      .eps = kNormEps,
                      .cache = cache_,
                      .rope = b_.AddRope(b_.spec_.rope),
                      .interleaved = heads_.interleaved,
                      .heads = mine_,
                      .nope_dim = heads_.nope,
                      .rope_dim = heads_.rope,
                      .latent_dim = heads_.latent});
  }

  void AddAttention() {
    b_.Widen(Buffer::kLatentQueries, mine_ * KeyDim());
    b_.Widen(Buffer::kLatentMixed, mine_ * heads_.latent);
    b_.Widen(Buffer::kAttention, mine_ * heads_.value);
    // All matrices of keys before all of values: a transposed tensor is read once.
    std::vector<WeightIndex> keys, values;
    for (std::uint32_t i = 0; i < mine_; ++i) keys.push_back(KeyMatrix(i));
    for (std::uint32_t i = 0; i < mine_; ++i) values.push_back(ValueMatrix(i));
    b_.Add(HeadLinearOp{.in = Buffer::kQkv,
                        .out = Buffer::kLatentQueries,
                        .in_dim = heads_.nope,
                        .out_dim = heads_.latent,
                        .rest = heads_.rope,
                        .matrices = std::move(keys)});
    b_.Add(AttentionOp{
        .qkv = Buffer::kLatentQueries,
        .out = Buffer::kLatentMixed,
        .cache = cache_,
        .scale = heads_.scale,
        .heads = {
            .query_heads = mine_, .kv_heads = 1, .key_dim = KeyDim(), .value_dim = heads_.latent}});
    b_.Add(HeadLinearOp{.in = Buffer::kLatentMixed,
                        .out = Buffer::kAttention,
                        .in_dim = heads_.latent,
                        .out_dim = heads_.value,
                        .matrices = std::move(values)});
    b_.ColumnLinear(name_ + "o_proj", Buffer::kAttention, std::uint64_t{all_} * heads_.value,
                    {std::uint64_t{first_} * heads_.value, std::uint64_t{mine_} * heads_.value});
  }

  // Rows of kv_b_proj: for each head those of its keys, then those of its values.
  std::uint64_t StoredRows() const { return std::uint64_t{all_} * HeadRows(); }
  std::uint64_t HeadRows() const { return std::uint64_t{heads_.nope} + heads_.value; }
  std::uint64_t FirstRow(std::uint32_t head) const { return (first_ + head) * HeadRows(); }
  std::string Label(const char* what, std::uint32_t head) const {
    return b_.scope_ + name_ + "kv_b_proj." + what + "." + std::to_string(head);
  }

  // [latent, nope]: transposed.
  WeightIndex KeyMatrix(std::uint32_t head) {
    WeightTarget target{Label("key", head), heads_.latent, heads_.nope, false, {}};
    target.parts.push_back({b_.Name(name_ + "kv_b_proj.weight"),
                            {heads_.latent, StoredRows()},
                            {0, heads_.latent},
                            {FirstRow(head), heads_.nope},
                            0,
                            true});
    return b_.AddTarget(std::move(target));
  }

  // [value, latent].
  WeightIndex ValueMatrix(std::uint32_t head) {
    WeightTarget target{Label("value", head), heads_.value, heads_.latent, false, {}};
    target.parts.push_back({b_.Name(name_ + "kv_b_proj.weight"),
                            {StoredRows(), heads_.latent},
                            {FirstRow(head) + heads_.nope, heads_.value},
                            {0, heads_.latent},
                            0});
    return b_.AddTarget(std::move(target));
  }

  DecoderBuilder& b_;
  const std::string name_;  // with the dot
  const LatentHeads heads_;
  const std::uint32_t all_, mine_, first_;  // query heads: of all ranks, of this rank, its first
  std::uint32_t cache_ = 0;
};

void AddLatentAttention(DecoderBuilder& b, const std::string& name, const LatentHeads& heads) {
  LatentAttentionBuilder(b, name, heads).Build();
}

}  // namespace penstock::shard
