// The GEMM: activations [rows, K] times packed weights, with its epilogues. One routine serves
// every number of rows. K is divided into blocks of weights that stay in the first-level cache; all
// rows are multiplied with a block in register tiles (gemm_tile.h) while the next block is
// prefetched. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/formats/format_kernels.h"
#include "shard/backend/cpu/formats/kernels/compressed.h"
#include "shard/backend/cpu/formats/kernels/gemm_tile.h"
#include "shard/backend/cpu/formats/kernels/int4.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kBlockBytes = 16 * 1024;  // of weights
// Activations of the rows that are multiplied with a panel one after the other: they stay in the
// second-level cache.
constexpr std::size_t kRowBytes = 768 * 1024;
// The first tiles of a block prefetch the next block, a part each. More than this many need not.
constexpr std::size_t kPrefetchingTiles = 6;

// Panels and the rows that are computed together.
struct GemmPiece {
  std::size_t first_row;
  std::size_t rows;
  std::size_t panel;
  std::size_t panels;  // 1 or 2
  std::size_t next;    // panels from this piece to the next
  std::size_t Vectors() const { return panels * kPanelVectors; }
};

// What joins the sums of a row, or null.
inline const float* AddedTo(const GemmArgs& args, std::size_t row) {
  return args.added == nullptr ? nullptr : args.added[row];
}

inline Vec Finished(const GemmArgs& args, const float* sums, std::size_t vector,
                    const float* added) {
  Vec sum = Load(sums);
  if (args.scales != nullptr) sum = Multiply(sum, Load(args.scales + vector * kLanes));
  if (args.bias != nullptr) sum = Add(sum, Load(args.bias + vector * kLanes));
  return added == nullptr ? sum : Add(sum, Load(added + (vector - args.first_vector) * kLanes));
}

// The vectors of the piece that the caller wants, as [first, end) of all packed columns.
struct VectorRange {
  std::size_t first;
  std::size_t end;
};
inline VectorRange VectorsOf(const GemmArgs& args, const GemmPiece& piece) {
  const std::size_t first = piece.panel * kPanelVectors;
  const std::size_t end = first + piece.Vectors();
  const std::size_t last = args.first_vector + args.vectors;
  return {first < args.first_vector ? args.first_vector : first, end < last ? end : last};
}

inline const float* SumsOfRow(const GemmArgs& args, const GemmPiece& piece, std::size_t row) {
  return args.scratch + row * piece.Vectors() * kLanes;
}

inline void WriteSums(const GemmArgs& args, const GemmPiece& piece, std::size_t row) {
  const float* sums = SumsOfRow(args, piece, row);
  float* out = static_cast<float*>(args.out) + (piece.first_row + row) * args.out_stride;
  const VectorRange range = VectorsOf(args, piece);
  const float* added = AddedTo(args, piece.first_row + row);
  for (std::size_t v = range.first; v < range.end; ++v) {
    const std::size_t column = v * kLanes;
    if (column >= args.out_columns) return;
    const std::size_t count = args.out_columns - column;
    Vec value = Finished(args, sums + (v - piece.panel * kPanelVectors) * kLanes, v, added);
    if (args.epilogue == Epilogue::kAdd) value = Add(LoadFirst(out + column, count), value);
    StoreFirst(out + column, value, count);
  }
}

inline Vec Activated(Activation activation, Vec x) {
  switch (activation) {
    case Activation::kSilu:
      return Silu(x);
    case Activation::kGelu:
      return Gelu(x);
    case Activation::kGeluTanh:
      return GeluTanh(x);
    case Activation::kRelu:
      return Max(Zero(), x);
    case Activation::kReluSquared:
      return Multiply(Max(Zero(), x), x);
  }
  return x;
}

template <class Out>
void WriteGated(const GemmArgs& args, const GemmPiece& piece, std::size_t row) {
  const float* sums = SumsOfRow(args, piece, row);
  Out* out = static_cast<Out*>(args.out) + (piece.first_row + row) * args.out_stride;
  const VectorRange range = VectorsOf(args, piece);
  const float* added = AddedTo(args, piece.first_row + row);
  for (std::size_t v = range.first; v < range.end; v += 2) {
    const std::size_t column = v / 2 * kLanes;
    if (column >= args.out_columns) return;
    const float* pair = sums + (v - piece.panel * kPanelVectors) * kLanes;
    const Vec gate = Finished(args, pair, v, added);
    const Vec up = Finished(args, pair + kLanes, v + 1, added);
    StoreActivations(out + column, Multiply(Activated(args.activation, gate), up),
                     args.out_columns - column);
  }
}

template <class Out>
void WriteActivated(const GemmArgs& args, const GemmPiece& piece, std::size_t row) {
  const float* sums = SumsOfRow(args, piece, row);
  Out* out = static_cast<Out*>(args.out) + (piece.first_row + row) * args.out_stride;
  const VectorRange range = VectorsOf(args, piece);
  const float* added = AddedTo(args, piece.first_row + row);
  for (std::size_t v = range.first; v < range.end; ++v) {
    const std::size_t column = v * kLanes;
    if (column >= args.out_columns) return;
    const Vec sum = Finished(args, sums + (v - piece.panel * kPanelVectors) * kLanes, v, added);
    StoreActivations(out + column, Activated(args.activation, sum), args.out_columns - column);
  }
}

// Where the weights of a piece lie.
template <class P>
struct BlockPlace {
  std::size_t panel_bytes;  // from panel to panel
  const std::byte* panel;   // the first panel
  const std::byte* At(std::size_t step) const { return panel + Offset(step); }
  // The offset of a step that begins a block.
  static constexpr std::size_t Offset(std::size_t step) {
    if constexpr (Compressed<P>) {
      return CompressedBytes(step * kStepBytes<P>);
    } else {
      return BytesOf<P>(step);
    }
  }
};

using TileFunction = void (*)(const GemmTile&);

template <class P, int Rows, int Vectors, _mm_hint Hint>
constexpr TileFunction TileAs() {
  constexpr int kRows = Rows <= kGemmRows<P, Vectors> ? Rows : 1;  // others are never used
  if constexpr (Compressed<P>) {
    return CompressedTile<P, kRows, Vectors, Hint>::Run;
  } else if constexpr (Nibbles<P>) {
    return Int4Tile<P, kRows, Vectors>::Run;
  } else if constexpr (Integers<P>) {
    return IntegerTile<P, kRows, Vectors>::Run;
  } else {
    return FloatTile<P, kRows, Vectors>::Run;
  }
}

template <class P, int Vectors, _mm_hint Hint>
TileFunction TileOf(std::size_t rows) {
  static_assert(kMostTileRows == 14);
  static constexpr TileFunction kTiles[kMostTileRows] = {
      TileAs<P, 1, Vectors, Hint>(),  TileAs<P, 2, Vectors, Hint>(),
      TileAs<P, 3, Vectors, Hint>(),  TileAs<P, 4, Vectors, Hint>(),
      TileAs<P, 5, Vectors, Hint>(),  TileAs<P, 6, Vectors, Hint>(),
      TileAs<P, 7, Vectors, Hint>(),  TileAs<P, 8, Vectors, Hint>(),
      TileAs<P, 9, Vectors, Hint>(),  TileAs<P, 10, Vectors, Hint>(),
      TileAs<P, 11, Vectors, Hint>(), TileAs<P, 12, Vectors, Hint>(),
      TileAs<P, 13, Vectors, Hint>(), TileAs<P, 14, Vectors, Hint>()};
  return kTiles[rows - 1];
}

// Fills `plain` for each panel of the piece, for `steps` steps that begin at `step`.
template <Compressed P>
void FindPlainGroups(const GemmArgs& args, const GemmPiece& piece, const BlockPlace<P>& place,
                     std::size_t step, std::size_t steps, PlainGroups* plain) {
  constexpr std::size_t kSteps = kPlainBlockBytes / kStepBytes<P>;
  for (std::size_t panel = 0; panel < piece.panels; ++panel) {
    for (std::size_t at = 0; at < steps; at += kSteps) {
      const std::size_t count = steps - at < kSteps ? steps - at : kSteps;
      plain[panel].template Add<P>(place.At(step + at) + panel * place.panel_bytes,
                                   count / kGroupSteps<P>, at / kGroupSteps<P>, args.overflow);
    }
  }
}

// Multiplies all rows of the piece by `steps` steps that begin at `step`.
template <class P, int Vectors, _mm_hint Hint>
void RunTiles(const GemmArgs& args, const GemmPiece& piece, std::size_t step, std::size_t steps) {
  using Activation = typename P::Activation;
  const auto* left =
      static_cast<const Activation*>(args.input) + piece.first_row * args.input_stride;
  const std::size_t panel_bytes = BlockPlace<P>::Offset(args.steps);
  const BlockPlace<P> place{
      panel_bytes, static_cast<const std::byte*>(args.weights) + piece.panel * panel_bytes};
  // After the last block of these panels come the next panels.
  const bool last = step + steps == args.steps;
  const std::byte* next = last ? place.panel + piece.next * panel_bytes : place.At(step + steps);
  GemmTile tile{};
  tile.right = place.At(step);
  tile.panel_bytes = tile.prefetch_panel_bytes = panel_bytes;
  const std::size_t next_bytes = BlockPlace<P>::Offset(steps);
  PlainGroups plain[Compressed<P> ? 2 : 0];
  if constexpr (Compressed<P>) {
    FindPlainGroups(args, piece, place, step, steps, plain);
    tile.plain = plain;
  }
  const std::size_t tiles = TileCount(piece.rows, kGemmRows<P, Vectors>);
  const std::size_t prefetching = tiles < kPrefetchingTiles ? tiles : kPrefetchingTiles;
  for (std::size_t i = 0; i < tiles; ++i) {
    const TileRows rows = TileAt(piece.rows, tiles, i);
    tile.left = left + rows.first * args.input_stride + step * P::kLeft;
    tile.left_stride = args.input_stride * sizeof(Activation);
    tile.steps = steps;
    tile.sums = args.scratch + rows.first * Vectors * kLanes;
    tile.first = step == 0;
    tile.prefetch = i < prefetching ? next + i * (next_bytes / prefetching) : next;
    tile.prefetch_stride = i < prefetching ? TileCount(kLine, prefetching) : 0;  // skips no line
    tile.group_stride = args.group_stride;
    if constexpr (Integers<P>) {
      tile.groups = args.groups + (piece.first_row + rows.first) * args.group_stride +
                    step * P::kPack / kRowGroup<P>;
    }
    TileOf<P, Vectors, Hint>(rows.count)(tile);
  }
}

template <class P, int Vectors>
void ComputePiece(const GemmArgs& args, const GemmPiece& piece) {
  constexpr std::size_t kPanels = Vectors / kPanelVectors;
  constexpr std::size_t kSteps = kBlockBytes / kPanels / kStepBytes<P>;
  static_assert(!Integers<P> || kSteps * P::kPack % kIntegerGroup == 0);
  static_assert(!Compressed<P> || kSteps * kStepBytes<P> % kPlainBlockBytes == 0);
  // With one panel, the present block and a prefetched one both fit the first-level cache.
  constexpr _mm_hint kHint = Compressed<P> && kPanels == 1 ? _MM_HINT_T0 : _MM_HINT_T1;
  for (std::size_t step = 0; step < args.steps; step += kSteps) {
    RunTiles<P, Vectors, kHint>(args, piece, step,
                                args.steps - step < kSteps ? args.steps - step : kSteps);
  }
}

// Up to this many rows are multiplied with two panels at once. With few rows, reading memory as two
// streams matters most; with more, widening each weight only once. Integers are not widened, and a
// loaded part of a row is used for twice as many products; but the sums of many rows and two panels
// take too much of the first-level cache.
template <class P>
constexpr std::size_t kRowsOfTwoPanels =
    StepsRows<P> ? 64 : 2 * kGemmRows<P, 2 * static_cast<int>(kPanelVectors)>;

// Into how many blocks the rows are divided. All panels are multiplied with a block before the next
// one.
template <class P>
std::size_t RowBlocks(const GemmArgs& args) {
  constexpr std::size_t kLeast = 4 * kMostTileRows;
  const std::size_t fitting = kRowBytes / (args.input_stride * sizeof(typename P::Activation));
  const std::size_t most = fitting < kLeast          ? kLeast
                           : fitting < kGemmRowBlock ? fitting
                                                     : kGemmRowBlock;
  return TileCount(args.rows, most);
}

// Whether `rows` rows are multiplied with two panels alternately, block by block, because one tile
// does not hold them against both. Memory is read as two streams, and each weight is expanded once.
template <class P>
constexpr bool TakesPanelsInTurns(std::size_t rows) {
  return Compressed<P> && rows > kGemmRows<P, 2 * static_cast<int>(kPanelVectors)> &&
         rows <= kRowsOfTwoPanels<P>;
}

template <class Out>
void Write(const GemmArgs& args, const GemmPiece& piece) {
  for (std::size_t i = 0; i < piece.rows; ++i) {
    if (args.epilogue == Epilogue::kGate) {
      WriteGated<Out>(args, piece, i);
    } else if (args.epilogue == Epilogue::kActivate) {
      WriteActivated<Out>(args, piece, i);
    } else {
      WriteSums(args, piece, i);
    }
  }
}

template <Compressed P, class Out>
void ComputeInTurns(const GemmArgs& args, const GemmPiece& both) {
  constexpr std::size_t kSteps = kBlockBytes / kStepBytes<P>;
  GemmArgs of_panel[2] = {args, args};
  of_panel[1].scratch += both.rows * kPanel;
  const auto piece = [&both](std::size_t panel) {
    return GemmPiece{both.first_row, both.rows, both.panel + panel, 1, 2};
  };
  for (std::size_t step = 0; step < args.steps; step += kSteps) {
    const std::size_t steps = args.steps - step < kSteps ? args.steps - step : kSteps;
    for (std::size_t panel = 0; panel < 2; ++panel) {
      RunTiles<P, kPanelVectors, _MM_HINT_T1>(of_panel[panel], piece(panel), step, steps);
    }
  }
  for (std::size_t panel = 0; panel < 2; ++panel) Write<Out>(of_panel[panel], piece(panel));
}

template <class P, class Out>
void Gemm(const GemmArgs& args) {
  constexpr int kTwoPanels = 2 * static_cast<int>(kPanelVectors);
  const std::size_t first = args.first_vector / kPanelVectors;
  const std::size_t end = TileCount(args.first_vector + args.vectors, kPanelVectors);
  const std::size_t blocks = RowBlocks<P>(args);
  for (std::size_t block = 0; block < blocks; ++block) {
    const TileRows rows = TileAt(args.rows, blocks, block);
    const bool turns = TakesPanelsInTurns<P>(rows.count);
    const std::size_t most = rows.count <= kRowsOfTwoPanels<P> ? 2 : 1;
    for (std::size_t panel = first; panel < end; panel += most) {
      const GemmPiece piece{rows.first, rows.count, panel, end - panel < most ? 1 : most, most};
      if constexpr (Compressed<P>) {
        if (turns && piece.panels == 2) {
          ComputeInTurns<P, Out>(args, piece);
          continue;
        }
      }
      if (piece.panels == 2) {
        ComputePiece<P, kTwoPanels>(args, piece);
      } else {
        ComputePiece<P, static_cast<int>(kPanelVectors)>(args, piece);
      }
      Write<Out>(args, piece);
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
