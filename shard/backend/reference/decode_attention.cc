#include "shard/backend/reference/decode_attention.h"

#include <algorithm>
#include <limits>
#include <map>

namespace penstock::shard {
namespace {

constexpr float kMaskedKey = -std::numeric_limits<float>::infinity();
// Floats of K that PartAttention widens and cuts at a time; at least one row.
constexpr std::int64_t kMostFloats = std::int64_t{1} << 22;

// The positions of keys [1, positions].
at::Tensor KeyPositions(const DecodeTiles& tiles) {
  return at::arange(tiles.first, tiles.first + tiles.keys.size(2),
                    at::TensorOptions().dtype(at::kLong).device(tiles.keys.device()))
      .unsqueeze(0);
}

// Those of the queries [sequences, 1].
at::Tensor QueryPositions(const DecodeTiles& tiles) {
  return Indexes(tiles.lengths, tiles.keys.device()).sub(1).unsqueeze(1);
}

// bool [sequences, positions]: true for positions that a query does not see.
at::Tensor Hidden(const AttentionShape& shape, const DecodeTiles& tiles) {
  const at::Tensor key = KeyPositions(tiles), query = QueryPositions(tiles);
  return key.gt(query).logical_or_(key.lt(shape.FirstVisible(query)));
}

// [width, rows, kv_heads, dim] -> tiles of these rows.
at::Tensor CutRowsIntoTiles(const at::Tensor& part, const at::Tensor& rows) {
  const std::int64_t width = part.size(0);
  const std::int64_t positions = (width + kDecodeTile - 1) / kDecodeTile * kDecodeTile;
  at::Tensor tiles = at::zeros({rows.size(0), part.size(2), positions, part.size(3)},
                               part.options().dtype(at::kFloat));
  tiles.narrow(2, 0, width).copy_(at::index_select(part, 1, rows).permute({1, 2, 0, 3}));
  return tiles;
}

}  // namespace

at::Tensor DecodeAttention(const AttentionShape& shape, const at::Tensor& q, DecodeTiles tiles) {
  const std::int64_t rows = q.size(0);
  const std::int64_t count = tiles.keys.size(2) / kDecodeTile;
  const std::int64_t group = shape.heads / shape.kv_heads;
  const std::int64_t products = rows * shape.kv_heads * count;
  const at::Tensor hidden = Hidden(shape, tiles);
  tiles.values.masked_fill_(hidden.unsqueeze(1).unsqueeze(3), 0.0);

  const at::Tensor queries =
      at::empty({rows, shape.kv_heads, count, group, shape.key_dim}, tiles.keys.options())
          .copy_(q.reshape({rows, shape.kv_heads, 1, group, shape.key_dim}))
          .view({products, group, shape.key_dim});
  const at::Tensor keys = tiles.keys.view({products, kDecodeTile, shape.key_dim});
  at::Tensor scores = at::bmm(queries, keys.transpose(1, 2))
                          .view({rows, shape.kv_heads, count, group, kDecodeTile});
  FinishScores(shape, scores);
  AddBiases(shape, {1, shape.kv_heads, 1, group, 1}, QueryPositions(tiles).view({rows, 1, 1, 1, 1}),
            KeyPositions(tiles).view({1, 1, count, 1, kDecodeTile}), scores);
  scores.masked_fill_(hidden.view({rows, 1, count, 1, kDecodeTile}), kMaskedKey);
  const at::Tensor largest = scores.amax({2, 4}, true);
  scores.sub_(largest).exp_();
  at::Tensor sums = scores.sum(-1).cumsum(2).select(2, count - 1);
  if (shape.sinks.defined()) {
    const at::Tensor sinks = shape.sinks.view({1, shape.kv_heads, group});
    sums = sums.add(sinks.sub(largest.reshape({rows, shape.kv_heads, group})).exp_());
  }
  const at::Tensor values = tiles.values.view({products, kDecodeTile, shape.value_dim});
  const at::Tensor mixed = at::bmm(scores.view({products, group, kDecodeTile}), values)
                               .view({rows, shape.kv_heads, count, group, shape.value_dim})
                               .cumsum(2)
                               .select(2, count - 1);
  return mixed.div(sums.unsqueeze(-1)).reshape({rows, shape.heads * shape.value_dim});
}

std::vector<PartQueries> CollectPartQueries(std::span<const SegmentInputs> segments,
                                            const CellLayout& layout) {
  std::map<std::uint32_t, PartQueries> parts;
  for (const SegmentInputs& segment : segments) {
    if (!IsPartQuery(segment)) continue;
    const CellLayout::Place place = layout.Find(*segment.row);
    PartQueries& part = parts[place.part];
    part.part = place.part;
    part.queries.push_back(segment.query_start);
    part.rows.push_back(place.row);
    part.lengths.push_back(segment.context_length + 1);
  }
  std::vector<PartQueries> list;
  for (auto& [index, part] : parts) list.push_back(std::move(part));
  return list;
}

void PartAttention(const AttentionShape& shape, const KvStore& cache, std::uint32_t index,
                   const PartQueries& part, const at::Tensor& queries, at::Tensor out) {
  const at::Tensor keys = cache.PartKeys(index, part.part);
  const at::Tensor values = cache.PartValues(index, part.part);
  const std::int64_t each = (keys.size(0) + kDecodeTile) * shape.kv_heads * shape.key_dim;
  const std::size_t most = static_cast<std::size_t>(std::max<std::int64_t>(1, kMostFloats / each));
  const at::Tensor all_rows = Indexes(part.rows, keys.device());
  const at::Tensor all_queries = Indexes(part.queries, keys.device());
  for (std::size_t first = 0; first < part.rows.size(); first += most) {
    const auto count = static_cast<std::int64_t>(std::min(most, part.rows.size() - first));
    const auto begin = static_cast<std::int64_t>(first);
    const at::Tensor rows = all_rows.narrow(0, begin, count);
    const at::Tensor mine = all_queries.narrow(0, begin, count);
    DecodeTiles tiles{CutRowsIntoTiles(keys, rows), CutRowsIntoTiles(values, rows), 0, {}};
    tiles.lengths.assign(part.lengths.begin() + begin, part.lengths.begin() + begin + count);
    const at::Tensor mixed =
        DecodeAttention(shape, at::index_select(queries, 0, mine), std::move(tiles));
    out.index_copy_(0, mine, mixed.to(out.scalar_type()));
  }
}

}  // namespace penstock::shard
