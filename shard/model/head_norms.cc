#include "shard/model/head_norms.h"

#include <utility>

namespace penstock::shard {

class HeadNormsBuilder {
 public:
  explicit HeadNormsBuilder(DecoderBuilder& b) : b_(b) {}

  void LayerNorm(const std::string& query, const std::string& key, HeadWeights weights) {
    HeadNormOp op = Empty(NormKind::kLayer);
    op.by_head = weights != HeadWeights::kShared;
    const HeadShape &all = b_.all_heads_, &mine = b_.heads_;
    const Range queries{std::uint64_t{b_.part_.rank} * mine.query_heads, mine.query_heads};
    const Range keys{b_.first_kv_head_, mine.kv_heads};
    if (weights == HeadWeights::kShared) {
      op.query_weight = Shared(query + ".weight");
      op.query_bias = Shared(query + ".bias");
      op.key_weight = Shared(key + ".weight");
      op.key_bias = Shared(key + ".bias");
    } else {
      op.query_weight = ByHead(query, weights, all.query_heads, queries);
      op.key_weight = ByHead(key, weights, all.kv_heads, keys);
    }
    b_.Add(op);
  }

  void Plain() {
    HeadNormOp op = Empty(NormKind::kRms);
    op.plain = true;
    b_.Add(op);
  }

  void Width(const std::string& query, const std::string& key) {
    const HeadShape &all = b_.all_heads_, &mine = b_.heads_;
    b_.Widen(Buffer::kSquares, 2);
    b_.Add(SquaresOp{.qkv = Buffer::kQkv, .out = Buffer::kSquares, .heads = mine});
    b_.AllReduce(Buffer::kSquares);
    // Where several ranks have the same K/V head, the sum counts it several times.
    b_.Add(WidthNormOp{
        .qkv = Buffer::kQkv,
        .squares = Buffer::kSquares,
        .query_weight =
            Slice(query, all.QueryWidth(),
                  {std::uint64_t{b_.part_.rank} * mine.QueryWidth(), mine.QueryWidth()}),
        .key_weight = Slice(key, all.KeyWidth(),
                            {std::uint64_t{b_.first_kv_head_} * mine.key_dim, mine.KeyWidth()}),
        .query_elements = b_.part_.world * mine.QueryWidth(),
        .key_elements = b_.part_.world * mine.KeyWidth(),
        .eps = b_.spec_.norm_eps,
        .heads = mine});
  }

 private:
  HeadNormOp Empty(NormKind kind) const {
    return {.qkv = Buffer::kQkv,
            .kind = kind,
            .weight_offset = b_.norm_offset_,
            .eps = b_.spec_.norm_eps,
            .heads = b_.heads_};
  }

  // Adds the weights of one head in the order of its dimensions.
  void AddRows(const std::string& tensor, std::uint64_t stack, std::uint64_t head,
               WeightTarget& target) const {
    const std::uint64_t dim = b_.heads_.key_dim;
    for (const RowSlice& slice : HeadRows(tensor, dim, 0, dim, b_.interleaved_)) {
      WeightPart part{slice.name, {dim}, slice.rows, {0, 1}, target.rows};
      part.row_step = slice.step;
      part.stack = stack;
      part.matrix = head;
      target.rows += slice.rows.count;
      target.parts.push_back(std::move(part));
    }
  }

  WeightIndex Shared(const std::string& tensor) {
    if (!b_.has_(b_.Name(tensor))) return kNoWeight;
    WeightTarget target{b_.scope_ + tensor, 0, 1, true, {}};
    AddRows(b_.Name(tensor), 0, 0, target);
    return b_.AddTarget(std::move(target));
  }

  WeightIndex ByHead(const std::string& name, HeadWeights weights, std::uint32_t all, Range mine) {
    WeightTarget target{b_.scope_ + name, 0, 1, true, {}};
    for (std::uint64_t head = mine.first; head < mine.first + mine.count; ++head) {
      if (weights == HeadWeights::kStacked) {
        AddRows(b_.Name(name + ".weight"), all, head, target);
      } else {
        AddRows(b_.Name(name + ".norms." + std::to_string(head) + ".weight"), 0, 0, target);
      }
    }
    return b_.AddTarget(std::move(target));
  }

  WeightIndex Slice(const std::string& name, std::uint64_t all, Range mine) {
    WeightTarget target{b_.scope_ + name, mine.count, 1, true, {}};
    target.parts.push_back({b_.Name(name + ".weight"), {all}, mine, {0, 1}, 0});
    return b_.AddTarget(std::move(target));
  }

  DecoderBuilder& b_;
};

void AddHeadLayerNorm(DecoderBuilder& b, const std::string& query, const std::string& key,
                      HeadWeights weights) {
  HeadNormsBuilder(b).LayerNorm(query, key, weights);
}

void AddPlainHeadNorm(DecoderBuilder& b) { HeadNormsBuilder(b).Plain(); }

void AddWidthNorm(DecoderBuilder& b, const std::string& query, const std::string& key) {
  HeadNormsBuilder(b).Width(query, key);
}

}  // namespace penstock::shard
