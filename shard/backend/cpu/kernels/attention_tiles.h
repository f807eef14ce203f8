// The register tiles of attention: rows of queries times vectors of positions, and rows of
// probabilities times vectors of dimensions. Every output is one chain in ascending order whatever
// the tile, so the registers alone decide the tile's size. While a tile is computed, the K/V that
// come next are prefetched (prefetch.h). Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/kernels/prefetch.h"

namespace penstock::shard::cpu {
namespace {

constexpr bool kManyRegisters = kRegisters == 32;
constexpr int kMostRows = kManyRegisters ? 12 : 4;

// Vectors of a tile with `rows` rows.
constexpr int ScoreVectors(int rows) { return rows == 1 || (kManyRegisters && rows <= 4) ? 4 : 2; }
constexpr int MixVectors(int rows) { return rows <= (kManyRegisters ? 4 : 1) ? 4 : 2; }

// Rows of the next tile when `rows` are left: 1, 2, 3, 4 and, with many registers, 6, 8 or 12.
inline int RowsOfTile(std::size_t rows) {
  constexpr int kMany[] = {0, 1, 2, 3, 4, 3, 6, 4, 8, 6, 6, 8, 12, 8, 8, 8, 8};
  constexpr int kFew[] = {0, 1, 2, 3, 4, 3, 3, 4};
  if constexpr (kManyRegisters) return rows < sizeof kMany / sizeof *kMany ? kMany[rows] : 12;
  return rows < sizeof kFew / sizeof *kFew ? kFew[rows] : 4;
}

inline std::size_t TilesOf(std::size_t rows) {
  std::size_t tiles = 0;
  for (std::size_t first = 0; first < rows; ++tiles) {
    first += static_cast<std::size_t>(RowsOfTile(rows - first));
  }
  return tiles;
}

// sums[i][v] += row i of `left`, LeftStride apart, times the vectors from right[v] on. With each
// vector it prefetches a line from lines[v] on.
template <class C, std::size_t LeftStride, int Rows, int Vectors>
[[gnu::always_inline]] inline void MultiplyTile(Vec (&sums)[Rows][Vectors],
                                                const typename C::Activation* left,
                                                const typename C::Weight* const (&right)[Vectors],
                                                std::size_t right_stride, std::size_t steps,
                                                const char* const (&lines)[Vectors]) {
  for (std::size_t step = 0; step < steps; ++step) {
    typename C::Right columns[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const typename C::Weight* from = right[v] + step * right_stride;
      _mm_prefetch(lines[v] + step * kFetchLine, _MM_HINT_T1);
      columns[v] = C::LoadRight(from);
    }
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i) {
      const typename C::Activation* row = left + static_cast<std::size_t>(i) * LeftStride;
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[i][v] = C::Step(sums[i][v], row, columns[v]);
    }
    left += C::kLeft;
  }
}

template <int Rows, int Vectors>
[[gnu::always_inline]] inline void ZeroTile(Vec (&sums)[Rows][Vectors]) {
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sums[i][v] = Zero();
  }
}

// A vector of consecutive positions in a block.
struct KeyVector {
  const std::byte* keys;
  std::size_t at;  // in the partition
};

struct ScoreArgs {
  const void* queries;  // [rows, kQueryStride]
  std::size_t steps;    // key_dim / kPack
  std::size_t stride;   // of keys, from step to step
  float* scores;        // [rows, kScoreStride]
  Prefetcher& prefetch;
};

template <class C, int Rows, int Vectors>
void ScoreTile(const ScoreArgs& args, const KeyVector* vectors, std::size_t row) {
  using Weight = typename C::Weight;
  Vec sums[Rows][Vectors];
  ZeroTile(sums);
  const Weight* right[Vectors];
  const char* lines[Vectors];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    right[v] = reinterpret_cast<const Weight*>(vectors[v].keys);
    lines[v] = args.prefetch.Take(args.steps, vectors[v].keys);
  }
  MultiplyTile<C, kQueryStride>(
      sums, static_cast<const typename C::Activation*>(args.queries) + row * kQueryStride, right,
      args.stride, args.steps, lines);
  // In ascending order: the next block overwrites what lies beyond the end of a block.
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) {
    float* to = args.scores + row * kScoreStride + vectors[v].at;
#pragma GCC unroll 12
    for (int i = 0; i < Rows; ++i)
      Store(to + static_cast<std::size_t>(i) * kScoreStride, sums[i][v]);
  }
}

template <class C, int Rows>
void ScoreVectorsOf(const ScoreArgs& args, const KeyVector* vectors, std::size_t count,
                    std::size_t row) {
  constexpr int kAtOnce = ScoreVectors(Rows);
  std::size_t done = 0;
  for (; done + kAtOnce <= count; done += kAtOnce) {
    ScoreTile<C, Rows, kAtOnce>(args, vectors + done, row);
  }
  for (; done < count; ++done) ScoreTile<C, Rows, 1>(args, vectors + done, row);
}

// Rows [first, first + rows) with all vectors.
template <class C>
void ScoreRows(const ScoreArgs& args, const KeyVector* vectors, std::size_t count,
               std::size_t first, std::size_t rows) {
  for (const std::size_t end = first + rows; first < end;) {
    const int tile = RowsOfTile(end - first);
    switch (tile) {
      case 1:
        ScoreVectorsOf<C, 1>(args, vectors, count, first);
        break;
      case 2:
        ScoreVectorsOf<C, 2>(args, vectors, count, first);
        break;
      case 3:
        ScoreVectorsOf<C, 3>(args, vectors, count, first);
        break;
      case 4:
        ScoreVectorsOf<C, 4>(args, vectors, count, first);
        break;
      default:
        if constexpr (kManyRegisters) {
          if (tile == 6) ScoreVectorsOf<C, 6>(args, vectors, count, first);
          if (tile == 8) ScoreVectorsOf<C, 8>(args, vectors, count, first);
          if (tile == 12) ScoreVectorsOf<C, 12>(args, vectors, count, first);
        }
    }
    first += static_cast<std::size_t>(tile);
  }
}

// Consecutive positions of a partition in one block.
struct ValueRun {
  const std::byte* values;  // of the first position
  std::size_t at;           // in the partition
  std::size_t steps;        // positions / kPack, rounded up
};

struct MixArgs {
  const void* probabilities;  // [rows, kScoreStride]
  const ValueRun* runs;
  std::size_t run_count;
  std::size_t value_dim;
  // For candidates: the V of each that ends its chain, at position `own_at`; else null.
  const std::byte* const* own;
  std::size_t own_at;
  std::size_t group;
  float* values;  // [rows, value_stride]
  std::size_t value_stride;
  Prefetcher& prefetch;
};

template <class C, int Rows, int Vectors>
void MixTile(const MixArgs& args, std::size_t row, std::size_t dimension) {
  using Weight = typename C::Weight;
  Vec sums[Rows][Vectors];
  ZeroTile(sums);
  const auto* left =
      static_cast<const typename C::Activation*>(args.probabilities) + row * kScoreStride;
  for (std::size_t run = 0; run < args.run_count; ++run) {
    const ValueRun& values = args.runs[run];
    const auto* first = reinterpret_cast<const Weight*>(values.values) + dimension * C::kPack;
    const Weight* right[Vectors];
    const char* lines[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      right[v] = first + static_cast<std::size_t>(v) * kLanes * C::kPack;
      lines[v] = args.prefetch.Take(values.steps, values.values);
    }
    MultiplyTile<C, kScoreStride>(sums, left + values.at, right, args.value_dim * C::kPack,
                                  values.steps, lines);
  }
#pragma GCC unroll 12
  for (int i = 0; i < Rows; ++i) {
    const std::size_t at = row + static_cast<std::size_t>(i);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const std::size_t column = dimension + static_cast<std::size_t>(v) * kLanes;
      if (args.own != nullptr) {
        const auto* own = reinterpret_cast<const Weight*>(args.own[at / args.group]);
        sums[i][v] =
            C::Step(sums[i][v], left + static_cast<std::size_t>(i) * kScoreStride + args.own_at,
                    C::LoadRight(own + column * C::kPack));
      }
      Store(args.values + at * args.value_stride + column, sums[i][v]);
    }
  }
}

template <class C, int Rows>
void MixDimensions(const MixArgs& args, std::size_t row) {
  constexpr int kAtOnce = MixVectors(Rows);
  const std::size_t vectors = (args.value_dim + kLanes - 1) / kLanes;
  std::size_t done = 0;
  for (; done + kAtOnce <= vectors; done += kAtOnce) {
    MixTile<C, Rows, kAtOnce>(args, row, done * kLanes);
  }
  for (; done < vectors; ++done) MixTile<C, Rows, 1>(args, row, done * kLanes);
}

template <class C>
void MixRows(const MixArgs& args, std::size_t rows) {
  for (std::size_t first = 0; first < rows;) {
    const int tile = RowsOfTile(rows - first);
    switch (tile) {
      case 1:
        MixDimensions<C, 1>(args, first);
        break;
      case 2:
        MixDimensions<C, 2>(args, first);
        break;
      case 3:
        MixDimensions<C, 3>(args, first);
        break;
      case 4:
        MixDimensions<C, 4>(args, first);
        break;
      default:
        if constexpr (kManyRegisters) {
          if (tile == 6) MixDimensions<C, 6>(args, first);
          if (tile == 8) MixDimensions<C, 8>(args, first);
          if (tile == 12) MixDimensions<C, 12>(args, first);
        }
    }
    first += static_cast<std::size_t>(tile);
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
