// The register tile of matrix products: some rows of activations times one or two panels of packed
// weights, over a block of K. Partial sums are stored and taken up again as float32, so each output
// is one chain over K in ascending order, whatever the tile and the block. Internal to the
// including file.
//
// A product P says how a step multiplies: kPack weights of each column lie together, kLeft elements
// of a row belong to them, and they are used in kParts parts, the first K first. kSpare registers
// are needed beside sums and columns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kPanel = kLanes * kPanelVectors;
constexpr std::size_t kLine = 64;
constexpr int kMostTileRows = 14;

// What registers hold: fewer rows against two panels, which are read as two streams, or more rows
// against one.
template <class P, int Vectors>
constexpr int kGemmRows = (kRegisters - P::kSpare - Vectors) / Vectors < kMostTileRows
                              ? (kRegisters - P::kSpare - Vectors) / Vectors
                              : kMostTileRows;

// Of one step of a panel.
template <class P>
constexpr std::size_t kStepBytes = kPanel* P::kPack * sizeof(typename P::Weight);

struct GemmTile {
  const void* left;
  std::size_t left_stride;  // bytes
  const std::byte* right;
  std::size_t panel_bytes;  // from panel to panel
  std::size_t steps;
  float* sums;  // [rows][vectors][kLanes]
  bool first;   // the chain begins here
  // Weights of later: while this tile is computed, the memory brings them nearer. So many bytes on
  // for each line of weights that is read.
  const std::byte* ahead;
  std::size_t ahead_stride;
  const Int8Group* groups;  // of int8 rows, from the tile's first step on
  std::size_t group_stride;
};

// The tile's rows, of which four share a pointer: three strides reach them all, where a pointer or
// an offset for each would not fit the registers.
template <int Rows>
class LeftRows {
 public:
  LeftRows(const void* first, std::size_t stride) : stride_(stride), thrice_(3 * stride) {
    __asm__("" : "+r"(stride_), "+r"(thrice_));  // else offsets of all rows are computed
    const auto* row = static_cast<const std::byte*>(first);
#pragma GCC unroll 4
    for (int i = 0; i < kFours; ++i, row += 4 * stride) {
      fours_[i] = row;
      __asm__("" : "+r"(fours_[i]));
    }
  }
  [[gnu::always_inline]] const std::byte* Row(int row) const {
    const std::byte* first = fours_[row / 4];
    switch (row % 4) {
      case 0:
        return first;
      case 1:
        return first + stride_;
      case 2:
        return first + 2 * stride_;
      default:
        return first + thrice_;
    }
  }
  [[gnu::always_inline]] void Advance(std::size_t bytes) {
#pragma GCC unroll 4
    for (int i = 0; i < kFours; ++i) fours_[i] += bytes;
  }

 private:
  static constexpr int kFours = (Rows + 3) / 4;
  const std::byte* fours_[kFours];
  std::size_t stride_;
  std::size_t thrice_;
};

// What moves on from step to step.
template <int Rows>
struct TileCursor {
  explicit TileCursor(const GemmTile& tile)
      : left(tile.left, tile.left_stride), right(tile.right), ahead(tile.ahead) {}
  LeftRows<Rows> left;
  const std::byte* right;
  const std::byte* ahead;
};

template <class P>
[[gnu::always_inline]] inline typename P::Right LoadPart(const typename P::Weight* from, int part) {
  if constexpr (P::kParts == 1) {
    return P::LoadRight(from);
  } else {
    return P::LoadRight(from, part);
  }
}

template <class P, int Panels>
[[gnu::always_inline]] inline void FetchAhead(const std::byte*& ahead, const GemmTile& tile) {
#pragma GCC unroll 2
  for (std::size_t line = 0; line < kStepBytes<P>; line += kLine, ahead += tile.ahead_stride) {
#pragma GCC unroll 2
    for (int p = 0; p < Panels; ++p) {
      _mm_prefetch(
          reinterpret_cast<const char*>(ahead + static_cast<std::size_t>(p) * tile.panel_bytes),
          _MM_HINT_T1);
    }
  }
}

template <class P, int Rows, int Vectors, class Sum>
[[gnu::always_inline]] inline void RunSteps(Sum (&sums)[Rows][Vectors], const GemmTile& tile,
                                            TileCursor<Rows>& at, std::size_t steps) {
  using Activation = typename P::Activation;
  constexpr int kPanels = Vectors / static_cast<int>(kPanelVectors);
  for (std::size_t step = 0; step < steps; ++step) {
    FetchAhead<P, kPanels>(at.ahead, tile);
#pragma GCC unroll 2
    for (int part = 0; part < P::kParts; ++part) {
      typename P::Right columns[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        const auto panel = static_cast<std::size_t>(v) / kPanelVectors;
        const auto vector = static_cast<std::size_t>(v) % kPanelVectors;
        const std::byte* from = at.right + panel * tile.panel_bytes;
        columns[v] = LoadPart<P>(
            reinterpret_cast<const typename P::Weight*>(from) + vector * kLanes * P::kPack, part);
      }
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const auto* row = reinterpret_cast<const Activation*>(at.left.Row(i));
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v) {
          sums[i][v] = P::Step(
              sums[i][v], row + static_cast<std::size_t>(part) * P::kLeft / P::kParts, columns[v]);
        }
      }
    }
    at.left.Advance(P::kLeft * sizeof(Activation));
    at.right += kStepBytes<P>;
  }
}

template <int Vectors>
inline float* SumsOf(const GemmTile& tile, int row, int vector) {
  return tile.sums + static_cast<std::size_t>(row * Vectors + vector) * kLanes;
}

// A tile of float32 sums.
template <class P, int Rows, int Vectors>
struct FloatTile {
  static void Run(const GemmTile& tile) {
    Vec sums[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        sums[i][v] = tile.first ? Zero() : Load(SumsOf<Vectors>(tile, i, v));
      }
    }
    TileCursor<Rows> at(tile);
    RunSteps<P>(sums, tile, at, tile.steps);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) Store(SumsOf<Vectors>(tile, i, v), sums[i][v]);
    }
  }
};

// A tile of integer sums, group by group of K.
template <class P, int Rows, int Vectors>
struct Int8Tile {
  static void Run(const GemmTile& tile) {
    constexpr std::size_t kSteps = kInt8Group / P::kPack;
    TileCursor<Rows> at(tile);
    const Int8Group* group = tile.groups;
    for (std::size_t step = 0; step < tile.steps; step += kSteps, ++group) {
      const std::size_t steps = tile.steps - step < kSteps ? tile.steps - step : kSteps;
      RunGroup(tile, at, steps, group, tile.first && step == 0);
    }
  }

 private:
  [[gnu::always_inline]] static void RunGroup(const GemmTile& tile, TileCursor<Rows>& at,
                                              std::size_t steps, const Int8Group* group,
                                              bool first) {
    Ints sums[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Ints offset = FillInts(group[static_cast<std::size_t>(i) * tile.group_stride].offset);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[i][v] = offset;
    }
    RunSteps<P>(sums, tile, at, steps);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Vec scale = Fill(group[static_cast<std::size_t>(i) * tile.group_stride].scale);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        float* to = SumsOf<Vectors>(tile, i, v);
        Store(to, MultiplyAdd(ToFloats(sums[i][v]), scale, first ? Zero() : Load(to)));
      }
    }
  }
};

using TileFunction = void (*)(const GemmTile&);

template <class P>
constexpr bool kIntegers = sizeof(typename P::Weight) == 1;

template <class P, int Rows, int Vectors>
constexpr TileFunction TileAs() {
  constexpr int kRows = Rows <= kGemmRows<P, Vectors> ? Rows : 1;  // others are never asked for
  if constexpr (kIntegers<P>) {
    return Int8Tile<P, kRows, Vectors>::Run;
  } else {
    return FloatTile<P, kRows, Vectors>::Run;
  }
}

template <class P, int Vectors>
TileFunction TileOf(std::size_t rows) {
  static_assert(kMostTileRows == 14);
  static constexpr TileFunction kTiles[kMostTileRows] = {
      TileAs<P, 1, Vectors>(),  TileAs<P, 2, Vectors>(),  TileAs<P, 3, Vectors>(),
      TileAs<P, 4, Vectors>(),  TileAs<P, 5, Vectors>(),  TileAs<P, 6, Vectors>(),
      TileAs<P, 7, Vectors>(),  TileAs<P, 8, Vectors>(),  TileAs<P, 9, Vectors>(),
      TileAs<P, 10, Vectors>(), TileAs<P, 11, Vectors>(), TileAs<P, 12, Vectors>(),
      TileAs<P, 13, Vectors>(), TileAs<P, 14, Vectors>()};
  return kTiles[rows - 1];
}

}  // namespace
}  // namespace penstock::shard::cpu
