// Attention over a cache of latents: V is the first part of K. A block is [block_size][key_dim],
// and int8 latents have a float32 scale for each position after them. Positions are widened to
// float32, a few at a time, and all query rows of the tile use them. The rule of determinism is
// that of kernels.h. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/kernels/attention.h"
#include "shard/backend/cpu/kernels/cells.h"

namespace penstock::shard::cpu {
namespace {

template <class Cell>
Cell* LatentAt(const HeadCache& cache, const CachePlace& place) {
  std::byte* const block = cache.base + place.block * cache.block_bytes;
  return reinterpret_cast<Cell*>(block) + place.offset * cache.key_dim;
}

// Where the scale of an int8 latent is.
inline std::byte* LatentScaleAt(const HeadCache& cache, const CachePlace& place) {
  return cache.base + place.block * cache.block_bytes + cache.block_size * cache.key_dim +
         place.offset * sizeof(float);
}

template <class Cell>
void WriteLatent(const HeadCache& cache, std::uint32_t block, std::size_t offset,
                 const float* latent, const float*, bool) {
  const CachePlace to{block, static_cast<std::uint32_t>(offset)};
  Cell* const out = LatentAt<Cell>(cache, to);
  if constexpr (sizeof(Cell) == 1) {
    const ScaledRow row(latent, cache.key_dim);
    for (std::size_t d = 0; d < cache.key_dim; ++d) out[d] = row.Integer(latent[d]);
    __builtin_memcpy(LatentScaleAt(cache, to), &row.scale, sizeof row.scale);
  } else {
    for (std::size_t d = 0; d < cache.key_dim; ++d) out[d] = RoundedTo(latent[d], Cell());
  }
}

template <class Cell>
void CopyLatent(const HeadCache& cache, const CachePlace& from, const CachePlace& to) {
  __builtin_memcpy(LatentAt<Cell>(cache, to), LatentAt<Cell>(cache, from),
                   cache.key_dim * sizeof(Cell));
  if constexpr (sizeof(Cell) == 1) {
    __builtin_memcpy(LatentScaleAt(cache, to), LatentScaleAt(cache, from), sizeof(float));
  }
}

inline Vec WidenedVector(const std::int8_t* from) { return LoadInt8(from); }
inline Vec WidenedVector(const std::uint16_t* from) { return LoadBf16(from); }
inline Vec WidenedVector(const float* from) { return Load(from); }
inline float Widened(std::int8_t x) { return x; }
inline float Widened(std::uint16_t x) {
  const std::uint32_t bits = std::uint32_t{x} << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline float Widened(float x) { return x; }

// One position as float32, with zeros up to a whole vector.
template <class Cell>
void WidenLatent(const HeadCache& cache, const CachePlace& from, float* out) {
  const Cell* const cells = LatentAt<Cell>(cache, from);
  float scale = 1.0f;
  if constexpr (sizeof(Cell) == 1) {
    __builtin_memcpy(&scale, LatentScaleAt(cache, from), sizeof scale);
  }
  const std::size_t dim = cache.key_dim, whole = dim / kLanes * kLanes;
  for (std::size_t d = 0; d < whole; d += kLanes) {
    Store(out + d, Multiply(WidenedVector(cells + d), Fill(scale)));
  }
  if (whole == dim) return;
  Store(out + whole, Zero());
  for (std::size_t d = whole; d < dim; ++d) out[d] = Widened(cells[d]) * scale;
}

// Positions [first, first + count) of the sequence.
template <class Cell>
void WidenLatents(const AttentionTile& tile, std::size_t first, std::size_t count,
                  const AttentionScratch& scratch) {
  const std::size_t size = tile.cache.block_size;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t position = first + i;
    WidenLatent<Cell>(tile.cache,
                      {tile.blocks[position / size], static_cast<std::uint32_t>(position % size)},
                      scratch.latents + i * scratch.latent_stride);
  }
}

// Scaled, with zeros up to a whole vector; rows latent_stride apart.
inline void LoadLatentQueries(const AttentionTile& tile, AttentionScratch& scratch) {
  auto* const out = static_cast<float*>(scratch.queries);
  const std::size_t dim = tile.cache.key_dim;
  for (std::size_t row = 0; row < tile.Rows(); ++row) {
    const float* in = tile.queries + row / tile.group * tile.query_stride + row % tile.group * dim;
    float* const to = out + row * scratch.latent_stride;
    for (std::size_t i = 0; i < dim; i += kLanes) {
      Store(to + i, Multiply(LoadFirst(in + i, dim - i), Fill(tile.scale)));
    }
  }
}

// Products of kRows queries with two widened positions. Each is one chain over the dimensions.
template <std::size_t kRows>
void ScoreLatentPair(const AttentionScratch& scratch, std::size_t vectors, std::size_t row,
                     const float* latents, float* scores) {
  const std::size_t stride = scratch.latent_stride;
  const float* const queries = static_cast<const float*>(scratch.queries) + row * stride;
  Vec first[kRows], second[kRows];
  for (std::size_t r = 0; r < kRows; ++r) first[r] = second[r] = Zero();
  for (std::size_t i = 0; i < vectors * kLanes; i += kLanes) {
    const Vec a = Load(latents + i), b = Load(latents + stride + i);
    for (std::size_t r = 0; r < kRows; ++r) {
      const Vec query = Load(queries + r * stride + i);
      first[r] = MultiplyAdd(query, a, first[r]);
      second[r] = MultiplyAdd(query, b, second[r]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    scores[r * kScoreStride] = SumOfLanes(first[r]);
    scores[r * kScoreStride + 1] = SumOfLanes(second[r]);
  }
}

// Scores of rows [first, end) with `count` widened positions, which are those from `at` on of the
// partition. An odd count writes one score more, which no row sees yet.
inline void ScoreLatents(const AttentionTile& tile, const AttentionScratch& scratch,
                         std::size_t first, std::size_t end, std::size_t at, std::size_t count) {
  constexpr std::size_t kRows = 4;
  const std::size_t vectors = (tile.cache.key_dim + kLanes - 1) / kLanes;
  for (std::size_t i = 0; i < count; i += 2) {
    const float* const latents = scratch.latents + i * scratch.latent_stride;
    std::size_t row = first;
    for (; row + kRows <= end; row += kRows) {
      ScoreLatentPair<kRows>(scratch, vectors, row, latents,
                             scratch.scores + row * kScoreStride + at + i);
    }
    for (; row < end; ++row) {
      ScoreLatentPair<1>(scratch, vectors, row, latents,
                         scratch.scores + row * kScoreStride + at + i);
    }
  }
}

// values += probability * latent, position by position, for kVectors vectors of two rows or one.
template <std::size_t kRows, std::size_t kVectors>
void MixLatentVectors(const AttentionScratch& scratch, const float* probabilities,
                      std::size_t count, std::size_t d, float* values, std::size_t value_stride) {
  Vec sums[kRows][kVectors];
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[r][v] = Load(values + r * value_stride + d + v * kLanes);
    }
  }
  const float* latents = scratch.latents + d;
  for (std::size_t i = 0; i < count; ++i, latents += scratch.latent_stride) {
    Vec latent[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) latent[v] = Load(latents + v * kLanes);
    for (std::size_t r = 0; r < kRows; ++r) {
      const Vec weight = Fill(probabilities[r * kScoreStride + i]);
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[r][v] = MultiplyAdd(weight, latent[v], sums[r][v]);
      }
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      Store(values + r * value_stride + d + v * kLanes, sums[r][v]);
    }
  }
}

template <std::size_t kRows>
void MixLatentRows(const AttentionTile& tile, const AttentionScratch& scratch, std::size_t row,
                   std::size_t at, std::size_t count, const AttentionState& state) {
  constexpr std::size_t kVectors = 4;
  const std::size_t dim = tile.cache.value_dim;
  const float* const probabilities =
      static_cast<const float*>(scratch.probabilities) + row * kScoreStride + at;
  float* const values = state.values + row * state.value_stride;
  std::size_t d = 0;
  for (; d + kVectors * kLanes <= dim; d += kVectors * kLanes) {
    MixLatentVectors<kRows, kVectors>(scratch, probabilities, count, d, values, state.value_stride);
  }
  for (; d < dim; d += kLanes) {
    MixLatentVectors<kRows, 1>(scratch, probabilities, count, d, values, state.value_stride);
  }
}

// Adds the widened positions, those from `at` on of the partition, to the values of rows
// [first, end).
inline void MixLatents(const AttentionTile& tile, const AttentionScratch& scratch,
                       std::size_t first, std::size_t end, std::size_t at, std::size_t count,
                       const AttentionState& state) {
  std::size_t row = first;
  for (; row + 2 <= end; row += 2) MixLatentRows<2>(tile, scratch, row, at, count, state);
  if (row < end) MixLatentRows<1>(tile, scratch, row, at, count, state);
}

inline void SoftmaxOfLatents(const AttentionTile& tile, const KeyRange& range,
                             AttentionScratch& scratch, const AttentionState& state) {
  AttentionTile alone = tile;
  alone.prefetch = {};
  Prefetcher none(alone);
  auto* const out = static_cast<float*>(scratch.probabilities);
  for (std::size_t row = 0; row < tile.Rows(); ++row) {
    const float* const scores = scratch.scores + row * kScoreStride;
    const RowLanes lanes = LanesOf(tile, range, row);
    state.maximum[row] = LargestScore(tile, lanes, scores, NoScales());
    state.sum[row] = ExponentsOf(tile, lanes, scores, state.maximum[row], NoScales(),
                                 out + row * kScoreStride, none);
  }
}

// Calls visit(first row, end row, position in the partition, count) for some positions at a time,
// after it has widened them. All rows see the positions of the sequence; candidates see their own.
template <class Cell, class Visit>
void VisitLatents(const AttentionTile& tile, const KeyRange& range, const AttentionScratch& scratch,
                  Visit visit) {
  const bool own = OwnIn(tile, range);
  const std::size_t end = own ? tile.position : range.end;
  for (std::size_t first = range.first; first < end; first += kLatentPositions) {
    const std::size_t count = end - first < kLatentPositions ? end - first : kLatentPositions;
    WidenLatents<Cell>(tile, first, count, scratch);
    visit(std::size_t{0}, tile.Rows(), first - range.origin, count);
  }
  for (std::size_t i = 0; own && i < tile.tokens; ++i) {
    WidenLatent<Cell>(tile.cache, tile.own[i], scratch.latents);
    visit(i * tile.group, (i + 1) * tile.group, tile.position - range.origin, std::size_t{1});
  }
}

template <class Cell>
void AttendLatents(const AttentionTile& tile, std::size_t index, AttentionScratch& scratch,
                   const AttentionState& state) {
  const KeyRange range = RangeOf(tile, index);
  VisitLatents<Cell>(tile, range, scratch,
                     [&](std::size_t first, std::size_t end, std::size_t at, std::size_t count) {
                       ScoreLatents(tile, scratch, first, end, at, count);
                     });
  SoftmaxOfLatents(tile, range, scratch, state);
  for (std::size_t row = 0; row < tile.Rows(); ++row) {
    for (std::size_t d = 0; d < tile.cache.value_dim; d += kLanes) {
      Store(state.values + row * state.value_stride + d, Zero());
    }
  }
  VisitLatents<Cell>(tile, range, scratch,
                     [&](std::size_t first, std::size_t end, std::size_t at, std::size_t count) {
                       MixLatents(tile, scratch, first, end, at, count, state);
                     });
}

template <class Cell>
constexpr CellKernels LatentsOf() {
  return {1, WriteLatent<Cell>, CopyLatent<Cell>, LoadLatentQueries, AttendLatents<Cell>};
}

}  // namespace
}  // namespace penstock::shard::cpu
