// The matrix product: activations [rows, K] times packed weights, with its epilogues. One routine
// for every number of rows: a register tile of a few rows by one panel; for more rows K is cut into
// blocks that stay in the cache, and partial sums are stored and taken up again as float32, so each
// output remains one chain. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kPanel = kLanes * kPanelVectors;
constexpr std::size_t kBlockBytes = 64 * 1024;  // of a panel
// Of the activations of rows that are computed one after the other against each panel: they stay
// in the second cache.
constexpr std::size_t kRowBytes = 768 * 1024;
// From so many rows on, a block of weights is widened once for all of them, not for each tile.
constexpr std::size_t kRowsToWiden = 2 * kRowTile + 1;
constexpr std::size_t kWidenedSteps = kGemmWidened / kPanel;

struct GemmTile {
  const void* left;
  std::size_t left_stride;
  const void* right;
  std::size_t steps;
  float* sums;              // rows of kMaxPanel
  bool first;               // the chain begins here
  const Int8Group* groups;  // of int8 rows, from the tile's first step on
  std::size_t group_stride;
};

inline float* SumsOf(const GemmTile& tile, int row, int vector) {
  return tile.sums + static_cast<std::size_t>(row) * kMaxPanel +
         static_cast<std::size_t>(vector) * kLanes;
}

// A tile of float32 sums.
template <class P, int Rows, int Vectors>
struct FloatTile {
  static void Run(const GemmTile& tile) {
    Vec sums[Rows][Vectors];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        sums[i][v] = tile.first ? Zero() : Load(SumsOf(tile, i, v));
      }
    }
    Accumulate<P, Rows, Vectors, true>(sums, static_cast<const typename P::Activation*>(tile.left),
                                       tile.left_stride,
                                       static_cast<const typename P::Weight*>(tile.right),
                                       kLanes * P::kPack, kPanel * P::kPack, tile.steps);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) Store(SumsOf(tile, i, v), sums[i][v]);
    }
  }
};

// A tile of integer sums, group by group of K.
template <class P, int Rows, int Vectors>
struct Int8Tile {
  static void Run(const GemmTile& tile) {
    constexpr std::size_t kSteps = kInt8Group / P::kPack;
    const auto* left = static_cast<const std::byte*>(tile.left);
    const auto* right = static_cast<const typename P::Weight*>(tile.right);
    const Int8Group* group = tile.groups;
    for (std::size_t step = 0; step < tile.steps; step += kSteps, ++group) {
      const std::size_t steps = tile.steps - step < kSteps ? tile.steps - step : kSteps;
      RunGroup(tile, left, right, steps, group, tile.first && step == 0);
      left += kSteps * P::kLeft;
      right += kSteps * kPanel * P::kPack;
    }
  }

 private:
  [[gnu::always_inline]] static void RunGroup(const GemmTile& tile, const std::byte* left,
                                              const typename P::Weight* right, std::size_t steps,
                                              const Int8Group* group, bool first) {
    Ints sums[Rows][Vectors];
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Ints offset = FillInts(group[static_cast<std::size_t>(i) * tile.group_stride].offset);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[i][v] = offset;
    }
    Accumulate<P, Rows, Vectors, true>(sums, left, tile.left_stride, right, kLanes * P::kPack,
                                       kPanel * P::kPack, steps);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const Vec scale = Fill(group[static_cast<std::size_t>(i) * tile.group_stride].scale);
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) {
        float* at = SumsOf(tile, i, v);
        Store(at, MultiplyAdd(ToFloats(sums[i][v]), scale, first ? Zero() : Load(at)));
      }
    }
  }
};

using TileFunction = void (*)(const GemmTile&);

template <class P, template <class, int, int> class Tile>
TileFunction TileFor(std::size_t rows, std::size_t vectors) {
  static_assert((P::kRows == 6 || P::kRows == 4) && (kPanelVectors == 4 || kPanelVectors == 2));
  constexpr int kFive = P::kRows == 6 ? 5 : 1;  // others are never asked for
  constexpr int kSix = P::kRows == 6 ? 6 : 1;
#define PENSTOCK_TILES(v)                                                           \
  {                                                                                 \
    Tile<P, 1, v>::Run, Tile<P, 2, v>::Run, Tile<P, 3, v>::Run, Tile<P, 4, v>::Run, \
        Tile<P, kFive, v>::Run, Tile<P, kSix, v>::Run                               \
  }
  if constexpr (kPanelVectors == 4) {
    static constexpr TileFunction kTiles[4][6] = {PENSTOCK_TILES(1), PENSTOCK_TILES(2),
                                                  PENSTOCK_TILES(3), PENSTOCK_TILES(4)};
    return kTiles[vectors - 1][rows - 1];
  } else {
    static constexpr TileFunction kTiles[2][6] = {PENSTOCK_TILES(1), PENSTOCK_TILES(2)};
    return kTiles[vectors - 1][rows - 1];
  }
#undef PENSTOCK_TILES
}

template <class P>
constexpr bool kIntegers = sizeof(typename P::Weight) == 1;

template <class P>
TileFunction TileOf(std::size_t rows, std::size_t vectors) {
  if constexpr (kIntegers<P>) {
    return TileFor<P, Int8Tile>(rows, vectors);
  } else {
    return TileFor<P, FloatTile>(rows, vectors);
  }
}

// Part of a panel and the rows that are computed together.
struct GemmPiece {
  std::size_t first_row;
  std::size_t rows;
  std::size_t vector;  // of packed columns
  std::size_t vectors;
};

inline Vec Finished(const GemmArgs& args, const float* sums, std::size_t vector) {
  Vec sum = Load(sums);
  if (args.scales != nullptr) sum = Multiply(sum, Load(args.scales + vector * kLanes));
  return args.bias == nullptr ? sum : Add(sum, Load(args.bias + vector * kLanes));
}

inline void WriteSums(const GemmArgs& args, const GemmPiece& piece, std::size_t row) {
  const float* sums = args.scratch + row * kMaxPanel;
  float* out = static_cast<float*>(args.out) + (piece.first_row + row) * args.out_stride;
  for (std::size_t v = 0; v < piece.vectors; ++v) {
    const std::size_t column = (piece.vector + v) * kLanes;
    if (column >= args.out_columns) return;
    const std::size_t count = args.out_columns - column;
    Vec value = Finished(args, sums + v * kLanes, piece.vector + v);
    if (args.epilogue == Epilogue::kAdd) value = Add(LoadFirst(out + column, count), value);
    StoreFirst(out + column, value, count);
  }
}

template <class Activation>
void WriteGated(const GemmArgs& args, const GemmPiece& piece, std::size_t row) {
  const float* sums = args.scratch + row * kMaxPanel;
  Activation* out = static_cast<Activation*>(args.out) + (piece.first_row + row) * args.out_stride;
  for (std::size_t v = 0; v < piece.vectors; v += 2) {
    const std::size_t column = (piece.vector + v) / 2 * kLanes;
    if (column >= args.out_columns) return;
    const Vec gate = Finished(args, sums + v * kLanes, piece.vector + v);
    const Vec up = Finished(args, sums + (v + 1) * kLanes, piece.vector + v + 1);
    StoreActivations(out + column, Multiply(Silu(gate), up), args.out_columns - column);
  }
}

template <class P>
const typename P::Weight* WeightsOf(const GemmArgs& args, const GemmPiece& piece) {
  const std::size_t panel = piece.vector / kPanelVectors;
  return static_cast<const typename P::Weight*>(args.weights) +
         (panel * args.steps * kPanel + piece.vector % kPanelVectors * kLanes) * P::kPack;
}

// All rows of the piece against `steps` steps from `step` on, whose weights are at `right`.
template <class P>
void RunTiles(const GemmArgs& args, const GemmPiece& piece, std::size_t step, std::size_t steps,
              const typename P::Weight* right) {
  const auto* left =
      static_cast<const typename P::Activation*>(args.input) + piece.first_row * args.input_stride;
  const std::size_t tiles = TileCount(piece.rows, P::kRows);
  for (std::size_t i = 0; i < tiles; ++i) {
    const TileRows rows = TileAt(piece.rows, tiles, i);
    GemmTile tile{left + rows.first * args.input_stride + step * P::kLeft,
                  args.input_stride,
                  right,
                  steps,
                  args.scratch + rows.first * kMaxPanel,
                  step == 0,
                  nullptr,
                  args.group_stride};
    if constexpr (kIntegers<P>) {
      tile.groups = args.groups + (piece.first_row + rows.first) * args.group_stride +
                    step * P::kPack / kInt8Group;
    }
    TileOf<P>(rows.count, piece.vectors)(tile);
  }
}

template <class P>
void ComputePiece(const GemmArgs& args, const GemmPiece& piece) {
  const typename P::Weight* right = WeightsOf<P>(args, piece);
  constexpr std::size_t kBlockSteps =
      kBlockBytes / (kPanel * P::kPack * sizeof(typename P::Weight));
  const std::size_t block = piece.rows <= P::kRows ? args.steps : kBlockSteps;
  for (std::size_t step = 0; step < args.steps; step += block) {
    const std::size_t steps = args.steps - step < block ? args.steps - step : block;
    RunTiles<P>(args, piece, step, steps, right + step * kPanel * P::kPack);
  }
}

// The same product in the same order, of weights that are widened block by block.
inline void ComputeWidened(const GemmArgs& args, const GemmPiece& piece) {
  const std::uint16_t* right = WeightsOf<WidenedProduct>(args, piece);
  float* widened = args.scratch + kGemmRowBlock * kMaxPanel;
  for (std::size_t step = 0; step < args.steps; step += kWidenedSteps) {
    const std::size_t steps = args.steps - step < kWidenedSteps ? args.steps - step : kWidenedSteps;
    for (std::size_t i = 0; i < steps; ++i) {
      const std::uint16_t* from = right + (step + i) * kPanel;
      _mm_prefetch(reinterpret_cast<const char*>(from) + kPrefetchBytes, _MM_HINT_T0);
      for (std::size_t v = 0; v < piece.vectors; ++v) {
        Store(widened + i * kPanel + v * kLanes, LoadBf16(from + v * kLanes));
      }
    }
    RunTiles<Float32Product>(args, piece, step, steps, widened);
  }
}

// Rows that are taken through all panels before the next.
template <class P>
std::size_t RowBlock(const GemmArgs& args) {
  const std::size_t row_bytes = args.input_stride * sizeof(typename P::Activation);
  const std::size_t fitting = kRowBytes / row_bytes / kRowTile * kRowTile;
  constexpr std::size_t kLeast = 8 * kRowTile;
  return fitting < kLeast ? kLeast : fitting < kGemmRowBlock ? fitting : kGemmRowBlock;
}

template <class P, class Out>
void Gemm(const GemmArgs& args) {
  const std::size_t end = args.first_vector + args.vectors;
  const std::size_t block = RowBlock<P>(args);
  for (std::size_t row = 0; row < args.rows; row += block) {
    const std::size_t rows = args.rows - row < block ? args.rows - row : block;
    for (std::size_t vector = args.first_vector; vector < end;) {
      const std::size_t in_panel = kPanelVectors - vector % kPanelVectors;
      const std::size_t vectors = end - vector < in_panel ? end - vector : in_panel;
      const GemmPiece piece{row, rows, vector, vectors};
      if constexpr (P::kWidens) {
        rows < kRowsToWiden ? ComputePiece<P>(args, piece) : ComputeWidened(args, piece);
      } else {
        ComputePiece<P>(args, piece);
      }
      for (std::size_t i = 0; i < rows; ++i) {
        if (args.epilogue == Epilogue::kGate) {
          WriteGated<Out>(args, piece, i);
        } else {
          WriteSums(args, piece, i);
        }
      }
      vector += vectors;
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
