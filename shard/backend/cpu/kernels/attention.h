// Attention of a tile of query rows over the partitions of a paged cache (kernels.h states the
// rule). Scores and values are two products with the register tile of products.h; masked positions
// have probability zero, and adding zero changes no bit, so a row does not depend on the rows it
// shares a tile with. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

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
  return tile.window == 0 || position < tile.window ? 0 : position - tile.window + 1;
}

inline KeyRange RangeOf(const AttentionTile& tile, std::size_t index) {
  KeyRange range{index * kPartition, 0, 0};
  const std::size_t visible = FirstVisible(tile, tile.position);
  range.first = visible / tile.cache.block_size * tile.cache.block_size;
  if (range.first < range.origin) range.first = range.origin;
  const std::size_t last = tile.position + (tile.own != nullptr ? 1 : tile.tokens);
  range.end = last < range.origin + kPartition ? last : range.origin + kPartition;
  return range;
}

// The place of the own position, where candidates have their own K and V, lies in the range.
inline bool OwnIn(const AttentionTile& tile, const KeyRange& range) {
  return tile.own != nullptr && tile.position < range.end;
}

// Consecutive positions within one block.
struct Run {
  std::size_t first;
  std::size_t offset;  // in the block
  std::size_t count;
  std::byte* base;
};

inline Run RunAt(const AttentionTile& tile, std::size_t position, std::size_t end) {
  const std::size_t size = tile.cache.block_size;
  const std::size_t offset = position % size;
  const std::size_t left = size - offset;
  const std::uint32_t block = tile.blocks[position / size];
  return {position, offset, end - position < left ? end - position : left,
          tile.cache.base + block * tile.cache.block_bytes};
}

template <class P>
void LoadQueries(const AttentionTile& tile, AttentionScratch& scratch) {
  auto* out = static_cast<typename P::Activation*>(scratch.queries);
  const std::size_t dim = tile.cache.head_dim;
  for (std::size_t token = 0; token < tile.tokens; ++token) {
    const float* in = tile.queries + token * tile.query_stride;
    // The heads of the group follow each other.
    for (std::size_t i = 0; i < tile.group * dim; i += kLanes) {
      const std::size_t count = tile.group * dim - i;
      StoreActivations(out + i, LoadFirst(in + i, count), count);
    }
    out += tile.group * dim;
  }
}

// Scores of `Rows` rows with one vector of positions.
template <class P, int Rows>
void ScoreRows(const typename P::Activation* queries, std::size_t query_stride, std::size_t dim,
               const typename P::Weight* keys, std::size_t key_stride, float* scores) {
  Vec sums[Rows][1];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) sums[i][0] = Zero();
  Accumulate<P, Rows, 1>(sums, queries, query_stride, keys, 0, key_stride, dim / P::kPack);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i)
    Store(scores + static_cast<std::size_t>(i) * kScoreStride, sums[i][0]);
}

// The last step of the chain where it differs from row to row: candidates' own values.
template <class P, int Rows, int Vectors>
void MixOwn(Vec (&sums)[Rows][Vectors], const AttentionTile& tile, std::size_t first_row,
            const typename P::Activation* probabilities, std::size_t dimension) {
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    const CachePlace& own = tile.own[(first_row + static_cast<std::size_t>(i)) / tile.group];
    const std::byte* base = tile.cache.base + own.block * tile.cache.block_bytes;
    const auto* right =
        reinterpret_cast<const typename P::Weight*>(base + tile.cache.value_offset) +
        (own.offset / P::kPack * tile.cache.head_dim + dimension) * P::kPack;
    const typename P::Activation* left = probabilities + static_cast<std::size_t>(i) * kPartition;
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      sums[i][v] = P::Step(sums[i][v], left,
                           P::LoadRight(right + static_cast<std::size_t>(v) * kLanes * P::kPack));
    }
  }
}

// Values of `Rows` rows in `Vectors` vectors of dimensions, over all positions of the range.
template <class P, int Rows, int Vectors>
void MixRows(const AttentionTile& tile, const KeyRange& range,
             const typename P::Activation* probabilities, std::size_t dimension,
             std::size_t first_row, float* values, std::size_t value_stride) {
  Vec sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) sums[i][v] = Zero();
  }
  const std::size_t dim = tile.cache.head_dim;
  const bool own = OwnIn(tile, range);
  const std::size_t shared_end = own ? tile.position / P::kPack * P::kPack : range.end;
  for (std::size_t position = range.first; position < shared_end;) {
    const Run run = RunAt(tile, position, shared_end);
    const auto* right =
        reinterpret_cast<const typename P::Weight*>(run.base + tile.cache.value_offset) +
        (run.offset / P::kPack * dim + dimension) * P::kPack;
    Accumulate<P, Rows, Vectors>(sums, probabilities + (position - range.origin), kPartition, right,
                                 kLanes * P::kPack, dim * P::kPack,
                                 (run.count + P::kPack - 1) / P::kPack);
    position += run.count;
  }
  if (own) {
    MixOwn<P, Rows, Vectors>(sums, tile, first_row, probabilities + (shared_end - range.origin),
                             dimension);
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      Store(values + static_cast<std::size_t>(i) * value_stride +
                static_cast<std::size_t>(v) * kLanes,
            sums[i][v]);
    }
  }
}

// Any number of rows.
template <class P>
void ScoreVector(const typename P::Activation* queries, std::size_t query_stride, std::size_t rows,
                 std::size_t dim, const typename P::Weight* keys, std::size_t key_stride,
                 float* scores) {
  using Function = void (*)(const typename P::Activation*, std::size_t, std::size_t,
                            const typename P::Weight*, std::size_t, float*);
  static constexpr Function kByRows[] = {ScoreRows<P, 1>, ScoreRows<P, 2>, ScoreRows<P, 3>,
                                         ScoreRows<P, 4>, ScoreRows<P, 5>, ScoreRows<P, 6>};
  const std::size_t tiles = TileCount(rows);
  for (std::size_t i = 0; i < tiles; ++i) {
    const TileRows tile = TileAt(rows, tiles, i);
    kByRows[tile.count - 1](queries + tile.first * query_stride, query_stride, dim, keys,
                            key_stride, scores + tile.first * kScoreStride);
  }
}

// Each candidate's rows against its own key; the lanes behind the first are of no position.
template <class P>
void ScoreOwn(const AttentionTile& tile, const KeyRange& range, AttentionScratch& scratch) {
  using Weight = typename P::Weight;
  const std::size_t dim = tile.cache.head_dim;
  for (std::size_t i = 0; i < tile.tokens; ++i) {
    const CachePlace& own = tile.own[i];
    const std::byte* base = tile.cache.base + own.block * tile.cache.block_bytes;
    const std::size_t row = i * tile.group;
    ScoreVector<P>(static_cast<const typename P::Activation*>(scratch.queries) + row * dim, dim,
                   tile.group, dim, reinterpret_cast<const Weight*>(base) + own.offset * P::kPack,
                   tile.cache.block_size * P::kPack,
                   scratch.scores + row * kScoreStride + (tile.position - range.origin));
  }
}

template <class P>
void Score(const AttentionTile& tile, const KeyRange& range, AttentionScratch& scratch) {
  using Activation = typename P::Activation;
  using Weight = typename P::Weight;
  const std::size_t dim = tile.cache.head_dim;
  const auto* queries = static_cast<const Activation*>(scratch.queries);
  for (std::size_t position = range.first; position < range.end;) {
    const Run run = RunAt(tile, position, range.end);
    for (std::size_t lane = 0; lane < run.count; lane += kLanes) {
      // Lanes behind the block hold nothing; the next block's scores replace theirs.
      const auto* keys = reinterpret_cast<const Weight*>(run.base) + (run.offset + lane) * P::kPack;
      float* scores = scratch.scores + (position - range.origin) + lane;
      ScoreVector<P>(queries, dim, tile.Rows(), dim, keys, tile.cache.block_size * P::kPack,
                     scores);
    }
    position += run.count;
  }
  if (OwnIn(tile, range)) ScoreOwn<P>(tile, range, scratch);
}

// Turns a row of scores into exponents; its maximum and sum go to `state`. Vectors are counted from
// the partition's start, so the shape of the sum does not depend on the range.
template <class Activation>
void SoftmaxRow(const AttentionTile& tile, const KeyRange& range, std::size_t row,
                AttentionScratch& scratch, const AttentionState& state) {
  const std::size_t position = tile.position + (tile.own != nullptr ? 0 : row / tile.group);
  const auto first = static_cast<std::ptrdiff_t>(FirstVisible(tile, position)) -
                     static_cast<std::ptrdiff_t>(range.origin);
  const auto end =
      static_cast<std::ptrdiff_t>(position) + 1 - static_cast<std::ptrdiff_t>(range.origin);
  const std::size_t begin = (range.first - range.origin) / kLanes * kLanes;
  const std::size_t stop = (range.end - range.origin + kLanes - 1) / kLanes * kLanes;
  float* scores = scratch.scores + row * kScoreStride;
  Activation* out = static_cast<Activation*>(scratch.probabilities) + row * kPartition;
  Vec best = Fill(kMinusInfinity);
  for (std::size_t i = begin; i < stop; i += kLanes) {
    const auto lane = static_cast<std::ptrdiff_t>(i);
    const Vec score = KeepLanes(Multiply(Load(scores + i), Fill(tile.scale)), first - lane,
                                end - lane, Fill(kMinusInfinity));
    Store(scores + i, score);
    best = Max(best, score);
  }
  const float maximum = MaxOfLanes(best);
  state.maximum[row] = maximum;
  if (maximum == kMinusInfinity) {  // sees nothing of this partition
    state.sum[row] = 0.0f;
    for (std::size_t i = begin; i < stop; i += kLanes) StoreActivations(out + i, Zero(), kLanes);
    return;
  }
  Vec sum = Zero();
  for (std::size_t i = begin; i < stop; i += kLanes) {
    const auto lane = static_cast<std::ptrdiff_t>(i);
    const Vec exponent = Exp(Subtract(Load(scores + i), Fill(maximum)));
    const Vec kept = KeepLanes(exponent, first - lane, end - lane, Zero());
    StoreActivations(out + i, kept, kLanes);
    sum = Add(sum, kept);
  }
  state.sum[row] = SumOfLanes(sum);
}

template <class P, int Vectors>
void MixDimensions(const AttentionTile& tile, const KeyRange& range, AttentionScratch& scratch,
                   const AttentionState& state, std::size_t dimension) {
  using Activation = typename P::Activation;
  using Function = void (*)(const AttentionTile&, const KeyRange&, const Activation*, std::size_t,
                            std::size_t, float*, std::size_t);
  static constexpr Function kByRows[] = {MixRows<P, 1, Vectors>, MixRows<P, 2, Vectors>,
                                         MixRows<P, 3, Vectors>, MixRows<P, 4, Vectors>,
                                         MixRows<P, 5, Vectors>, MixRows<P, 6, Vectors>};
  const std::size_t tiles = TileCount(tile.Rows());
  for (std::size_t i = 0; i < tiles; ++i) {
    const TileRows rows = TileAt(tile.Rows(), tiles, i);
    const auto* left =
        static_cast<const Activation*>(scratch.probabilities) + rows.first * kPartition;
    kByRows[rows.count - 1](tile, range, left, dimension, rows.first,
                            state.values + rows.first * state.value_stride + dimension,
                            state.value_stride);
  }
}

template <class P>
void Attend(const AttentionTile& tile, std::size_t index, AttentionScratch& scratch,
            const AttentionState& state) {
  const KeyRange range = RangeOf(tile, index);
  Score<P>(tile, range, scratch);
  for (std::size_t row = 0; row < tile.Rows(); ++row) {
    SoftmaxRow<typename P::Activation>(tile, range, row, scratch, state);
  }
  const std::size_t dim = tile.cache.head_dim;
  std::size_t done = 0;
  if constexpr (kRegisters == 32) {
    for (; done + 3 * kLanes < dim; done += 4 * kLanes) {
      MixDimensions<P, 4>(tile, range, scratch, state, done);
    }
  }
  for (; done + kLanes < dim; done += 2 * kLanes) {
    MixDimensions<P, 2>(tile, range, scratch, state, done);
  }
  if (done < dim) MixDimensions<P, 1>(tile, range, scratch, state, done);
}

template <class P>
void Similarity(const SimilarityArgs& args) {
  using Weight = typename P::Weight;
  const HeadCache& plane = args.plane;
  const std::size_t size = plane.block_size;
  for (std::size_t position = args.first; position < args.end; position += size) {
    const std::byte* base = plane.base + args.blocks[position / size] * plane.block_bytes;
    const std::size_t count = args.end - position < size ? args.end - position : size;
    for (std::size_t lane = 0; lane < count; lane += kLanes) {
      for (std::size_t row = 0; row < args.count; row += kRowTile) {
        const std::size_t rows = args.count - row < kRowTile ? args.count - row : kRowTile;
        ScoreVector<P>(static_cast<const typename P::Activation*>(args.rows) + row * args.stride,
                       args.stride, rows, plane.head_dim,
                       reinterpret_cast<const Weight*>(base) + lane * P::kPack, size * P::kPack,
                       args.scratch);
        for (std::size_t i = 0; i < rows; ++i) {
          const Vec scores =
              KeepLanes(Load(args.scratch + i * kScoreStride), 0,
                        static_cast<std::ptrdiff_t>(count - lane), Fill(kMinusInfinity));
          const float best = MaxOfLanes(scores);
          if (best > args.largest[row + i]) args.largest[row + i] = best;
        }
      }
    }
  }
}

inline void Merge(std::size_t rows, std::size_t head_dim, const AttentionState& right,
                  const AttentionState& left) {
  for (std::size_t row = 0; row < rows; ++row) {
    if (right.maximum[row] == kMinusInfinity) continue;
    const bool fresh = left.maximum[row] == kMinusInfinity;
    const float maximum =
        left.maximum[row] > right.maximum[row] ? left.maximum[row] : right.maximum[row];
    const Vec old_scale = fresh ? Zero() : Exp(Fill(left.maximum[row] - maximum));
    const Vec new_scale = Exp(Fill(right.maximum[row] - maximum));
    alignas(64) float scales[2][kLanes];
    Store(scales[0], old_scale);
    Store(scales[1], new_scale);
    const float left_sum = fresh ? 0.0f : left.sum[row] * scales[0][0];
    left.sum[row] = __builtin_fmaf(right.sum[row], scales[1][0], left_sum);
    left.maximum[row] = maximum;
    for (std::size_t d = 0; d < head_dim; d += kLanes) {
      float* to = left.values + row * left.value_stride + d;
      const Vec from = Load(right.values + row * right.value_stride + d);
      const Vec old = fresh ? Zero() : Multiply(Load(to), old_scale);
      Store(to, MultiplyAdd(from, new_scale, old));
    }
  }
}

template <class P>
void Finish(const AttentionTile& tile, const AttentionState& state, void* out,
            std::size_t out_stride) {
  const std::size_t dim = tile.cache.head_dim;
  for (std::size_t row = 0; row < tile.Rows(); ++row) {
    auto* to = static_cast<typename P::Activation*>(out) + row / tile.group * out_stride +
               row % tile.group * dim;
    const Vec sum = Fill(state.sum[row]);
    for (std::size_t d = 0; d < dim; d += kLanes) {
      const Vec value = Load(state.values + row * state.value_stride + d);
      StoreActivations(to + d, Divide(value, sum), dim - d);
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
