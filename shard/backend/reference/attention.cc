#include "shard/backend/reference/attention.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "shard/backend/reference/decode_attention.h"
#include "shard/backend/reference/operations.h"

namespace penstock::shard {
namespace {

constexpr double kMaskedOut = -std::numeric_limits<double>::infinity();

// Queries at positions [first, first + count) against keys at [first_key, first_key + keys).
struct Tile {
  std::int64_t first;
  std::int64_t count;
  std::int64_t first_key;
  std::int64_t keys;
};

Tile MakeTile(const AttentionShape& shape, const SegmentInputs& segment, std::int64_t row) {
  const std::int64_t first = segment.context_length + row;
  const std::int64_t fitting = kMaxScores / (shape.heads * (first + kQueryTile));
  const std::int64_t tile = std::clamp<std::int64_t>(fitting, 1, kQueryTile);
  const std::int64_t count = std::min(tile, segment.query_count - row);
  const std::int64_t first_key = shape.FirstVisible(first);
  return {first, count, first_key, first + count - first_key};
}

// Positions [first, first + count), where `beside` is.
at::Tensor Positions(std::int64_t first, std::int64_t count, const at::Tensor& beside) {
  return at::arange(first, first + count,
                    at::TensorOptions().dtype(at::kLong).device(beside.device()));
}

// scores: [kv_heads, group, queries, keys].
void MaskScores(const AttentionShape& shape, const Tile& tile, at::Tensor scores) {
  if (tile.count == 1) return;  // its keys are exactly the visible ones
  const at::Tensor query = Positions(tile.first, tile.count, scores).unsqueeze(1);
  const at::Tensor key = Positions(tile.first_key, tile.keys, scores).unsqueeze(0);
  const at::Tensor hidden = key.gt(query).logical_or_(key.lt(shape.FirstVisible(query)));
  scores.masked_fill_(hidden, kMaskedOut);
}

// The same shape.
void AddTileBiases(const AttentionShape& shape, const Tile& tile, const at::Tensor& scores) {
  AddBiases(shape, {shape.kv_heads, -1, 1, 1},
            Positions(tile.first, tile.count, scores).unsqueeze(1),
            Positions(tile.first_key, tile.keys, scores), scores);
}

// Cuts [keys, kv_heads, dim], which begins at position first_key, into tiles.
at::Tensor CutIntoTiles(const at::Tensor& keys, std::int64_t first_key, std::int64_t first) {
  const std::int64_t end = first_key + keys.size(0);
  const std::int64_t positions = (end - first + kDecodeTile - 1) / kDecodeTile * kDecodeTile;
  at::Tensor tiles = at::zeros({1, keys.size(1), positions, keys.size(2)}, keys.options());
  tiles.narrow(2, first_key - first, keys.size(0)).copy_(keys.transpose(0, 1).unsqueeze(0));
  return tiles;
}

// Computes one query like a row of a part of the padded layout, so that their bits are equal.
void QueryAttention(const AttentionShape& shape, const KvStore& cache, std::uint32_t index,
                    const SegmentInputs& segment, const at::Tensor& queries, at::Tensor out) {
  const Tile tile = MakeTile(shape, segment, 0);
  const std::int64_t first = tile.first_key / kDecodeTile * kDecodeTile;
  const at::Tensor keys = cache.Keys(index, segment, tile.first_key, tile.keys);
  const at::Tensor values = cache.Values(index, segment, tile.first_key, tile.keys);
  DecodeTiles tiles{CutIntoTiles(keys, tile.first_key, first),
                    CutIntoTiles(values, tile.first_key, first),
                    first,
                    {tile.first + 1}};
  const at::Tensor query = queries.narrow(0, segment.query_start, 1);
  out.narrow(0, segment.query_start, 1).copy_(DecodeAttention(shape, query, std::move(tiles)));
}

// scores: [kv_heads, group, queries, keys]. The sinks take part in the sum.
at::Tensor Softmax(const AttentionShape& shape, const at::Tensor& scores) {
  if (!shape.sinks.defined()) return at::softmax(scores, -1);
  const at::Tensor sinks =
      shape.sinks.view({shape.kv_heads, -1, 1, 1}).expand({-1, -1, scores.size(2), 1});
  return at::softmax(at::cat({scores, sinks}, -1), -1).narrow(-1, 0, scores.size(-1));
}

}  // namespace

at::Tensor AttentionShape::FirstVisible(const at::Tensor& positions) const {
  const at::Tensor of_chunk =
      chunk > 0 ? positions.sub(positions.remainder(chunk)) : positions.mul(0);
  return window > 0 ? of_chunk.clamp_min(positions.sub(window - 1)) : of_chunk;
}

void FinishScores(const AttentionShape& shape, at::Tensor scores) {
  scores.mul_(shape.scale);
  if (shape.softcap != 0.0) SoftCap(scores, shape.softcap);
}

void AddBiases(const AttentionShape& shape, at::IntArrayRef heads, const at::Tensor& queries,
               const at::Tensor& keys, at::Tensor scores) {
  if (!shape.slopes.defined()) return;
  const at::Tensor slopes = shape.slopes.view(heads);
  if (shape.rounded_scale == 0.0) {
    scores.add_(slopes.mul(keys.sub(queries).to(at::kFloat)));
    return;
  }
  const at::Tensor rounded = slopes.to(at::kBFloat16).mul(keys.to(at::kBFloat16));
  scores.add_(rounded.to(at::kFloat).mul_(shape.rounded_scale));
}

void SegmentAttention(const AttentionShape& shape, const KvStore& cache, std::uint32_t index,
                      const SegmentInputs& segment, const at::Tensor& queries, at::Tensor out) {
  if (segment.query_count == 1) {
    return QueryAttention(shape, cache, index, segment, queries, out);
  }
  const std::int64_t group = shape.heads / shape.kv_heads;
  for (std::int64_t row = 0; row < segment.query_count;) {
    const Tile tile = MakeTile(shape, segment, row);
    // [keys, kv_heads, dim] -> [kv_heads, key_dim, keys] and [kv_heads, keys, value_dim]
    const at::Tensor keys =
        cache.Keys(index, segment, tile.first_key, tile.keys).permute({1, 2, 0});
    const at::Tensor values =
        cache.Values(index, segment, tile.first_key, tile.keys).transpose(0, 1);
    // [queries, kv_heads, group, key_dim] -> [kv_heads, group * queries, key_dim]
    const at::Tensor q = queries.narrow(0, segment.query_start + row, tile.count)
                             .to(at::kFloat)
                             .view({tile.count, shape.kv_heads, group, shape.key_dim})
                             .permute({1, 2, 0, 3})
                             .reshape({shape.kv_heads, group * tile.count, shape.key_dim});
    at::Tensor scores = at::bmm(q, keys);
    FinishScores(shape, scores);
    const at::Tensor by_head = scores.view({shape.kv_heads, group, tile.count, tile.keys});
    AddTileBiases(shape, tile, by_head);
    MaskScores(shape, tile, by_head);
    const at::Tensor mixed = at::bmm(Softmax(shape, by_head).reshape(scores.sizes()), values)
                                 .view({shape.kv_heads, group, tile.count, shape.value_dim})
                                 .permute({2, 0, 1, 3});
    out.narrow(0, segment.query_start + row, tile.count)
        .view({tile.count, shape.kv_heads, group, shape.value_dim})
        .copy_(mixed);
    row += tile.count;
  }
}

void CandidateAttention(const AttentionShape& shape, const KvStore& cache, std::uint32_t index,
                        const SegmentInputs& segment, const at::Tensor& queries, at::Tensor out) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  const std::int64_t rows = segment.query_count;
  const std::int64_t context = segment.context_length;
  const std::int64_t first_key = shape.FirstVisible(context);
  const std::int64_t keys = context - first_key;
  // [kv_heads, group, rows, key_dim], and one key and value for each of the rows.
  const at::Tensor q = queries.narrow(0, segment.query_start, rows)
                           .to(at::kFloat)
                           .view({rows, shape.kv_heads, group, shape.key_dim})
                           .permute({1, 2, 0, 3});
  const at::Tensor& own = segment.groups[cache.GroupOf(index)].own_slots;
  const at::Tensor own_keys = cache.KeysAt(index, own).transpose(0, 1).unsqueeze(1);
  const at::Tensor own_values = cache.ValuesAt(index, own).transpose(0, 1).unsqueeze(1);
  at::Tensor scores = q.mul(own_keys).sum(-1, true);
  if (keys > 0) {
    const at::Tensor shared =
        at::bmm(q.reshape({shape.kv_heads, group * rows, shape.key_dim}),
                cache.Keys(index, segment, first_key, keys).permute({1, 2, 0}));
    scores = at::cat({shared.view({shape.kv_heads, group, rows, keys}), scores}, -1);
  }
  FinishScores(shape, scores);
  AddTileBiases(shape, {context, 1, first_key, keys + 1}, scores);
  const at::Tensor weights = Softmax(shape, scores);
  at::Tensor mixed = weights.narrow(-1, keys, 1).mul(own_values);
  if (keys > 0) {
    const at::Tensor shared =
        at::bmm(weights.narrow(-1, 0, keys).reshape({shape.kv_heads, group * rows, keys}),
                cache.Values(index, segment, first_key, keys).transpose(0, 1));
    mixed.add_(shared.view({shape.kv_heads, group, rows, shape.value_dim}));
  }
  out.narrow(0, segment.query_start, rows)
      .view({rows, shape.kv_heads, group, shape.value_dim})
      .copy_(mixed.permute({2, 0, 1, 3}));
}

}  // namespace penstock::shard
