// The matrix product: activations [rows, K] times packed weights, with its epilogues. One routine
// for every number of rows: a register tile of up to 6 rows by one panel; for more rows K is cut
// into blocks that stay in the cache, and partial sums are stored and taken up again as float32, so
// each output remains one chain. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kPanel = kLanes * kPanelVectors;
constexpr std::size_t kBlockBytes = 64 * 1024;  // of a panel

struct GemmTile {
  const void* left;
  std::size_t left_stride;
  const void* right;
  std::size_t steps;
  float* sums;  // rows of kMaxPanel
  bool first;   // the chain begins here
};

template <class P, int Rows, int Vectors>
void RunTile(const GemmTile& tile) {
  Vec sums[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      sums[i][v] = tile.first ? Zero()
                              : Load(tile.sums + static_cast<std::size_t>(i) * kMaxPanel +
                                     static_cast<std::size_t>(v) * kLanes);
    }
  }
  Accumulate<P, Rows, Vectors, Rows <= 2>(
      sums, static_cast<const typename P::Activation*>(tile.left), tile.left_stride,
      static_cast<const typename P::Weight*>(tile.right), kLanes * P::kPack, kPanel * P::kPack,
      tile.steps);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      Store(tile.sums + static_cast<std::size_t>(i) * kMaxPanel +
                static_cast<std::size_t>(v) * kLanes,
            sums[i][v]);
    }
  }
}

using TileFunction = void (*)(const GemmTile&);

template <class P>
TileFunction TileFor(std::size_t rows, std::size_t vectors) {
  static_assert(kRowTile == 6 && (kPanelVectors == 4 || kPanelVectors == 2));
#define PENSTOCK_TILES(v)                                                                     \
  {                                                                                           \
    RunTile<P, 1, v>, RunTile<P, 2, v>, RunTile<P, 3, v>, RunTile<P, 4, v>, RunTile<P, 5, v>, \
        RunTile<P, 6, v>                                                                      \
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

// Part of a panel and the rows that are computed together.
struct GemmPiece {
  std::size_t first_row;
  std::size_t rows;
  std::size_t vector;  // of packed columns
  std::size_t vectors;
};

inline Vec WithBias(const GemmArgs& args, const float* sums, std::size_t vector) {
  const Vec sum = Load(sums);
  return args.bias == nullptr ? sum : Add(sum, Load(args.bias + vector * kLanes));
}

inline void WriteSums(const GemmArgs& args, const GemmPiece& piece, std::size_t row) {
  const float* sums = args.scratch + row * kMaxPanel;
  float* out = static_cast<float*>(args.out) + (piece.first_row + row) * args.out_stride;
  for (std::size_t v = 0; v < piece.vectors; ++v) {
    const std::size_t column = (piece.vector + v) * kLanes;
    if (column >= args.out_columns) return;
    const std::size_t count = args.out_columns - column;
    Vec value = WithBias(args, sums + v * kLanes, piece.vector + v);
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
    const Vec gate = WithBias(args, sums + v * kLanes, piece.vector + v);
    const Vec up = WithBias(args, sums + (v + 1) * kLanes, piece.vector + v + 1);
    StoreActivations(out + column, Multiply(Silu(gate), up), args.out_columns - column);
  }
}

template <class P>
void ComputePiece(const GemmArgs& args, const GemmPiece& piece) {
  const auto* left =
      static_cast<const typename P::Activation*>(args.input) + piece.first_row * args.input_stride;
  const std::size_t panel = piece.vector / kPanelVectors;
  const auto* right =
      static_cast<const typename P::Weight*>(args.weights) +
      (panel * args.steps * kPanel + piece.vector % kPanelVectors * kLanes) * P::kPack;
  constexpr std::size_t kBlockSteps =
      kBlockBytes / (kPanel * P::kPack * sizeof(typename P::Weight));
  const std::size_t block = piece.rows <= kRowTile ? args.steps : kBlockSteps;
  const std::size_t tiles = TileCount(piece.rows);
  for (std::size_t step = 0; step < args.steps; step += block) {
    const std::size_t steps = args.steps - step < block ? args.steps - step : block;
    for (std::size_t i = 0; i < tiles; ++i) {
      const TileRows rows = TileAt(piece.rows, tiles, i);
      TileFor<P>(rows.count,
                 piece.vectors)({left + rows.first * args.input_stride + step * P::kPack,
                                 args.input_stride, right + step * kPanel * P::kPack, steps,
                                 args.scratch + rows.first * kMaxPanel, step == 0});
    }
  }
}

template <class P>
void Gemm(const GemmArgs& args) {
  const std::size_t end = args.first_vector + args.vectors;
  for (std::size_t row = 0; row < args.rows; row += kGemmRowBlock) {
    const std::size_t rows = args.rows - row < kGemmRowBlock ? args.rows - row : kGemmRowBlock;
    for (std::size_t vector = args.first_vector; vector < end;) {
      const std::size_t in_panel = kPanelVectors - vector % kPanelVectors;
      const std::size_t vectors = end - vector < in_panel ? end - vector : in_panel;
      const GemmPiece piece{row, rows, vector, vectors};
      ComputePiece<P>(args, piece);
      for (std::size_t i = 0; i < rows; ++i) {
        if (args.epilogue == Epilogue::kGate) {
          WriteGated<typename P::Activation>(args, piece, i);
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
