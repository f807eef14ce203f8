// Attention of a tile of query rows over the partitions of a paged cache; kernels.h states the rule
// of determinism. Masked positions have probability zero, and adding zero changes no bit, so a row
// does not depend on the other rows of its tile. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/kernels/attention_tiles.h"
#include "shard/backend/cpu/kernels/cells.h"

namespace penstock::shard::cpu {
namespace {

constexpr float kMinusInfinity = -__builtin_huge_valf();

// Positions of partition `index` that some row of the tile sees, widened to the start of a block.
struct KeyRange {
  std::size_t origin;  // of the partition
  std::size_t first;
  std::size_t end;
};

inline std::size_t FirstVisible(const AttentionTile& tile, std::size_t position) {
  const std::size_t of_chunk = tile.chunk == 0 ? 0 : position / tile.chunk * tile.chunk;
  const bool all = tile.window == 0 || position < tile.window;
  const std::size_t of_window = all ? 0 : position - tile.window + 1;
  return of_chunk > of_window ? of_chunk : of_window;
}

inline KeyRange RangeOf(const AttentionTile& tile, std::size_t index) {
  KeyRange range{index * kPartition, 0, 0};
  const std::size_t visible = FirstVisible(tile, tile.position);
  range.first = visible / tile.cache.block_size * tile.cache.block_size;
  if (range.first < range.origin) range.first = range.origin;
  const std::size_t causal = tile.position + (tile.own != nullptr ? 1 : tile.tokens);
  const std::size_t last = tile.end > 0 ? tile.end : causal;
  range.end = last < range.origin + kPartition ? last : range.origin + kPartition;
  return range;
}

// Whether the position for which the candidates have their own K and V is in the range.
inline bool OwnIn(const AttentionTile& tile, const KeyRange& range) {
  return tile.own != nullptr && tile.position < range.end;
}

inline std::byte* BlockAt(const AttentionTile& tile, std::size_t position) {
  return tile.cache.base + tile.blocks[position / tile.cache.block_size] * tile.cache.block_bytes;
}

// How many positions from `position` on, up to `end`, are in its block.
inline std::size_t CountInBlock(const AttentionTile& tile, std::size_t position, std::size_t end) {
  const std::size_t left = tile.cache.block_size - position % tile.cache.block_size;
  return end - position < left ? end - position : left;
}

// Scaled, rows kQueryStride apart.
template <class C>
void LoadQueries(const AttentionTile& tile, AttentionScratch& scratch) {
  auto* out = static_cast<typename C::Activation*>(scratch.queries);
  const std::size_t dim = tile.cache.key_dim;
  for (std::size_t row = 0; row < tile.Rows(); ++row) {
    const float* in = tile.queries + row / tile.group * tile.query_stride + row % tile.group * dim;
    for (std::size_t i = 0; i < dim; i += kLanes) {
      const Vec scaled = Multiply(LoadFirst(in + i, dim - i), Fill(tile.scale));
      StoreActivations(out + row * kQueryStride + i, scaled, dim - i);
    }
  }
}

template <class C>
void Score(const AttentionTile& tile, const KeyRange& range, AttentionScratch& scratch,
           Prefetcher& prefetch) {
  using Weight = typename C::Weight;
  const std::size_t size = tile.cache.block_size;
  const ScoreArgs args{scratch.queries, tile.cache.key_dim / C::kPack, size * C::kPack,
                       scratch.scores, prefetch};
  KeyVector vectors[kPartition];
  std::size_t count = 0;
  for (std::size_t position = range.first; position < range.end;) {
    const std::byte* block = BlockAt(tile, position);
    const std::size_t positions = CountInBlock(tile, position, range.end);
    for (std::size_t lane = 0; lane < positions; lane += kLanes) {
      const std::size_t at = (position % size + lane) * C::kPack * sizeof(Weight);
      vectors[count++] = {block + at, position - range.origin + lane};
    }
    position += positions;
  }
  prefetch.Spread(kRequestedWithScores, count * TilesOf(tile.Rows()));
  ScoreRows<C>(args, vectors, count, 0, tile.Rows());
  if (!OwnIn(tile, range)) return;
  // Each candidate's rows against its own key. The rest of that vector belongs to no position.
  for (std::size_t i = 0; i < tile.tokens; ++i) {
    const CachePlace& own = tile.own[i];
    const KeyVector key{tile.cache.base + own.block * tile.cache.block_bytes +
                            own.offset * C::kPack * sizeof(Weight),
                        tile.position - range.origin};
    ScoreRows<C>(args, &key, 1, i * tile.group, tile.group);
  }
}

// The positions of a partition that a row sees.
struct Visible {
  std::ptrdiff_t first, end;
  bool All(std::size_t lane) const {
    return first <= static_cast<std::ptrdiff_t>(lane) &&
           static_cast<std::ptrdiff_t>(lane + kLanes) <= end;
  }
  Vec Keep(Vec x, std::size_t lane, float other) const {
    const auto at = static_cast<std::ptrdiff_t>(lane);
    return KeepLanes(x, first - at, end - at, Fill(other));
  }
};

// The scales of K and V for the positions of a partition; only for int8.
struct CellScales {
  float keys[kPartition + kLanes] = {};
  float values[kPartition + kLanes] = {};

  void Read(const AttentionTile& tile, const std::byte* block, std::size_t offset,
            std::size_t count, std::size_t at) {
    const HeadCache& cache = tile.cache;
    const std::byte* scales = block + offset * sizeof(float);
    __builtin_memcpy(keys + at, scales + cache.block_size * cache.key_dim, count * sizeof(float));
    scales += cache.value_offset + cache.block_size * cache.value_dim;
    __builtin_memcpy(values + at, scales, count * sizeof(float));
  }
};

struct NoScales {};

template <class C>
using ScalesOf = std::conditional_t<kScaled<C>, CellScales, NoScales>;

template <class C>
ScalesOf<C> ReadScales(const AttentionTile& tile, const KeyRange& range) {
  ScalesOf<C> scales;
  if constexpr (kScaled<C>) {
    for (std::size_t position = range.first; position < range.end;) {
      const std::size_t count = CountInBlock(tile, position, range.end);
      scales.Read(tile, BlockAt(tile, position), position % tile.cache.block_size, count,
                  position - range.origin);
      position += count;
    }
  }
  return scales;
}

inline Vec ScaledScore(const float* score, std::size_t, const NoScales&) { return Load(score); }
inline Vec ScaledScore(const float* score, std::size_t lane, const CellScales& scales) {
  return Multiply(Load(score), Load(scales.keys + lane));
}
// The linear biases of a row of scores.
struct RowBiases {
  float slope;   // 0: there are none
  float origin;  // the position of the first lane from the query's, or from 0 if rounded
  float rounded_scale;
};

inline Vec RoundedToBf16(Vec x) {
  std::uint16_t halves[kLanes];
  StoreFirstBf16(halves, x, kLanes);
  return LoadBf16(halves);
}

inline Vec BiasesAt(const RowBiases& biases, std::size_t lane) {
  constexpr float kSteps[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  static_assert(kLanes <= sizeof kSteps / sizeof *kSteps);
  const Vec places = Add(Load(kSteps), Fill(biases.origin + static_cast<float>(lane)));
  if (biases.rounded_scale == 0.0f) return Multiply(places, Fill(biases.slope));
  const Vec product = Multiply(RoundedToBf16(places), RoundedToBf16(Fill(biases.slope)));
  return Multiply(RoundedToBf16(product), Fill(biases.rounded_scale));
}

template <class Scales>
Vec FinalScore(const AttentionTile& tile, const float* score, std::size_t lane,
               const Scales& scales, const RowBiases& biases) {
  const Vec scaled = ScaledScore(score, lane, scales);
  const Vec bounded = tile.softcap == 0.0f ? scaled : SoftCap(scaled, Fill(tile.softcap));
  return biases.slope == 0.0f ? bounded : Add(bounded, BiasesAt(biases, lane));
}
inline Vec ForValues(Vec exponent, std::size_t, const NoScales&) { return exponent; }
inline Vec ForValues(Vec exponent, std::size_t lane, const CellScales& scales) {
  return Multiply(exponent, Load(scales.values + lane));
}

// The end of the positions that a token at `position` sees.
inline std::size_t EndVisible(const AttentionTile& tile, std::size_t position) {
  if (tile.end == 0) return position + 1;
  const std::size_t within = position + tile.window;
  return tile.window == 0 || tile.end < within ? tile.end : within;
}

// The vectors of a row of scores that hold a position which the row sees. They count from the start
// of the partition, so the shape of a sum over them does not depend on the range.
struct RowLanes {
  Visible visible;
  std::size_t begin, stop;
  RowBiases biases;
};

inline RowBiases BiasesOf(const AttentionTile& tile, const KeyRange& range, std::size_t row,
                          std::size_t position) {
  if (tile.slopes == nullptr) return {};
  const auto origin = static_cast<float>(range.origin);
  const bool rounded = tile.rounded_scale != 0.0f;
  return {tile.slopes[row % tile.group], rounded ? origin : origin - static_cast<float>(position),
          tile.rounded_scale};
}

inline RowLanes LanesOf(const AttentionTile& tile, const KeyRange& range, std::size_t row) {
  const std::size_t position = tile.position + (tile.own != nullptr ? 0 : row / tile.group);
  const auto origin = static_cast<std::ptrdiff_t>(range.origin);
  return {{static_cast<std::ptrdiff_t>(FirstVisible(tile, position)) - origin,
           static_cast<std::ptrdiff_t>(EndVisible(tile, position)) - origin},
          (range.first - range.origin) / kLanes * kLanes,
          (range.end - range.origin + kLanes - 1) / kLanes * kLanes,
          BiasesOf(tile, range, row, position)};
}

template <class Scales>
float LargestScore(const AttentionTile& tile, const RowLanes& lanes, const float* scores,
                   const Scales& scales) {
  Vec best = Fill(kMinusInfinity);
  for (std::size_t i = lanes.begin; i < lanes.stop; i += kLanes) {
    Vec score = FinalScore(tile, scores + i, i, scales, lanes.biases);
    if (!lanes.visible.All(i)) score = lanes.visible.Keep(score, i, kMinusInfinity);
    best = Max(best, score);
  }
  return MaxOfLanes(best);
}

// Turns a row of scores into exponentials, times the scales of V. Returns the sum of exponentials.
template <class Activation, class Scales>
float ExponentsOf(const AttentionTile& tile, const RowLanes& lanes, const float* scores,
                  float maximum, const Scales& scales, Activation* out, Prefetcher& prefetch) {
  if (maximum == kMinusInfinity) {  // attends to nothing here
    for (std::size_t i = lanes.begin; i < lanes.stop; i += kLanes) {
      StoreActivations(out + i, Zero(), kLanes);
    }
    return 0.0f;
  }
  Vec sum = Zero();
  for (std::size_t i = lanes.begin; i < lanes.stop; i += kLanes) {
    prefetch.Touch();
    const Vec score = FinalScore(tile, scores + i, i, scales, lanes.biases);
    Vec exponent = ExpOfNegative(Subtract(score, Fill(maximum)));
    if (!lanes.visible.All(i)) exponent = lanes.visible.Keep(exponent, i, 0.0f);
    StoreActivations(out + i, ForValues(exponent, i, scales), kLanes);
    sum = Add(sum, exponent);
  }
  return SumOfLanes(sum);
}

// The maxima of all rows come first: they are independent, while the exponentials of a row wait for
// its maximum.
template <class C>
void Softmax(const AttentionTile& tile, const KeyRange& range, AttentionScratch& scratch,
             const AttentionState& state, Prefetcher& prefetch) {
  ScalesOf<C> scales = ReadScales<C>(tile, range);
  const auto read_own = [&](std::size_t row) {
    if constexpr (kScaled<C>) {
      if (!OwnIn(tile, range)) return;
      const CachePlace& own = tile.own[row / tile.group];
      scales.Read(tile, tile.cache.base + own.block * tile.cache.block_bytes, own.offset, 1,
                  tile.position - range.origin);
    }
  };
  for (std::size_t row = 0; row < tile.Rows(); ++row) {
    read_own(row);
    state.maximum[row] =
        LargestScore(tile, LanesOf(tile, range, row), scratch.scores + row * kScoreStride, scales);
  }
  auto* out = static_cast<typename C::Activation*>(scratch.probabilities);
  prefetch.Spread(kRequestedWithExponents, tile.Rows() * ((range.end - range.first) / kLanes + 1));
  for (std::size_t row = 0; row < tile.Rows(); ++row) {
    read_own(row);
    state.sum[row] =
        ExponentsOf(tile, LanesOf(tile, range, row), scratch.scores + row * kScoreStride,
                    state.maximum[row], scales, out + row * kScoreStride, prefetch);
  }
}

template <class C>
void Mix(const AttentionTile& tile, const KeyRange& range, AttentionScratch& scratch,
         const AttentionState& state, Prefetcher& prefetch) {
  using Weight = typename C::Weight;
  const std::size_t dim = tile.cache.value_dim;
  const auto value_at = [&tile, dim](const std::byte* block, std::size_t offset) {
    return block + tile.cache.value_offset + offset / C::kPack * C::kPack * dim * sizeof(Weight);
  };
  const bool own = OwnIn(tile, range);
  const std::size_t end = own ? tile.position / C::kPack * C::kPack : range.end;
  ValueRun runs[kPartition];
  std::size_t count = 0;
  for (std::size_t position = range.first; position < end;) {
    const std::size_t positions = CountInBlock(tile, position, end);
    const std::size_t offset = position % tile.cache.block_size;
    const std::byte* block = BlockAt(tile, position);
    runs[count++] = {value_at(block, offset), position - range.origin,
                     (positions + C::kPack - 1) / C::kPack};
    position += positions;
  }
  const std::byte* own_values[kTileRows];
  for (std::size_t i = 0; own && i < tile.tokens; ++i) {
    const std::byte* block = tile.cache.base + tile.own[i].block * tile.cache.block_bytes;
    own_values[i] = value_at(block, tile.own[i].offset);
  }
  prefetch.Spread(1.0, count * TilesOf(tile.Rows()) * ((dim + kLanes - 1) / kLanes));
  MixRows<C>({scratch.probabilities, runs, count, dim, own ? own_values : nullptr,
              end - range.origin, tile.group, state.values, state.value_stride, prefetch},
             tile.Rows());
}

template <class C>
void Attend(const AttentionTile& tile, std::size_t index, AttentionScratch& scratch,
            const AttentionState& state) {
  const KeyRange range = RangeOf(tile, index);
  Prefetcher prefetch(tile);
  Score<C>(tile, range, scratch, prefetch);
  Softmax<C>(tile, range, scratch, state, prefetch);
  Mix<C>(tile, range, scratch, state, prefetch);
}

inline void MergeRow(std::size_t row, std::size_t value_dim, float old_scale, float new_scale,
                     const AttentionState& right, const AttentionState& left) {
  const Vec old = Fill(old_scale), fresh = Fill(new_scale);
  for (std::size_t d = 0; d < value_dim; d += kLanes) {
    float* to = left.values + row * left.value_stride + d;
    const Vec from = Load(right.values + row * right.value_stride + d);
    Store(to, MultiplyAdd(from, fresh, Multiply(Load(to), old)));
  }
}

inline void Merge(std::size_t rows, std::size_t value_dim, const AttentionState& right,
                  const AttentionState& left) {
  for (std::size_t row = 0; row < rows; ++row) {
    const float mine = left.maximum[row], other = right.maximum[row];
    if (other == kMinusInfinity) continue;
    if (mine == kMinusInfinity) {  // `left` is not initialised yet
      left.maximum[row] = other;
      left.sum[row] = right.sum[row];
      for (std::size_t d = 0; d < value_dim; d += kLanes) {
        Store(left.values + row * left.value_stride + d,
              Load(right.values + row * right.value_stride + d));
      }
      continue;
    }
    const float maximum = mine > other ? mine : other;
    alignas(64) float scales[kLanes] = {mine - maximum, other - maximum};
    Store(scales, ExpOfNegative(Load(scales)));
    left.sum[row] = __builtin_fmaf(right.sum[row], scales[1], left.sum[row] * scales[0]);
    left.maximum[row] = maximum;
    MergeRow(row, value_dim, scales[0], scales[1], right, left);
  }
}

template <class Activation>
void Finish(const AttentionTile& tile, const AttentionState& state, void* out,
            std::size_t out_stride) {
  const std::size_t dim = tile.cache.value_dim;
  for (std::size_t row = 0; row < tile.Rows(); ++row) {
    auto* to =
        static_cast<Activation*>(out) + row / tile.group * out_stride + row % tile.group * dim;
    const Vec sum = Fill(state.sum[row]);
    for (std::size_t d = 0; d < dim; d += kLanes) {
      const Vec value = Load(state.values + row * state.value_stride + d);
      StoreActivations(to + d, Divide(value, sum), dim - d);
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
