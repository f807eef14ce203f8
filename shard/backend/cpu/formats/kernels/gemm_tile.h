// The register tile of a GEMM: some rows of activations times one or two panels of packed weights,
// over a block of K. Partial sums are stored and loaded again as float32, so each output is one
// chain over K in ascending order, whatever the tile and the block. Internal to the including file.
//
// A product P defines a step: kPack weights of each column lie together, kLeft elements of a row
// belong to them, and they are multiplied in kParts parts in the order of K. It needs kSpare
// registers besides sums and columns. A product of integers may multiply a row with all columns at
// once (StepRow), and may have scales before each group of weights (kGroupScales). Weights of 4
// bits (kNibbles) have a tile of their own (int4.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/formats/format_kernels.h"

namespace penstock::shard::cpu {
namespace {

constexpr std::size_t kPanel = kLanes * kPanelVectors;
constexpr std::size_t kLine = 64;
constexpr int kMostTileRows = 14;

// How many rows the registers hold: fewer against two panels, more against one.
template <class P, int Vectors>
constexpr int kGemmRows = (kRegisters - P::kSpare - Vectors) / Vectors < kMostTileRows
                              ? (kRegisters - P::kSpare - Vectors) / Vectors
                              : kMostTileRows;

template <class P>
concept Integers = requires {
  P::kLargest;
};
template <class P>
concept GroupScales = requires {
  P::kGroupScales;
};
template <class P>
concept Nibbles = requires {
  P::kNibbles;
};
template <class P>
concept StepsRows = requires {
  P::kUnrolled;
};

// Bytes of one step of a panel.
template <class P>
constexpr std::size_t kStepBytes = kPanel* P::kPack * sizeof(typename P::Weight);
template <Nibbles P>
constexpr std::size_t kStepBytes<P> = kPanel* P::kPack / 2;

// Bytes before the weights of each kIntegerGroup values of K of a panel.
template <class P>
constexpr std::size_t kHeaderBytes = 0;
template <GroupScales P>
constexpr std::size_t kHeaderBytes<P> = kPanel * sizeof(float);
template <Nibbles P>
constexpr std::size_t kHeaderBytes<P> = kPanel* kInt4HeaderBytes;

// Values of a quantised row with one scale.
template <class P>
constexpr std::size_t kRowGroup = kIntegerGroup;
template <Nibbles P>
constexpr std::size_t kRowGroup<P> = kInt4Group;

// Bytes of the first `steps` steps of a panel, which are whole groups if there are groups, or all.
template <class P>
constexpr std::size_t BytesOf(std::size_t steps) {
  std::size_t bytes = steps * kStepBytes<P>;
  if constexpr (kHeaderBytes < P >> 0) {
    constexpr std::size_t kSteps = kIntegerGroup / P::kPack;
    bytes += (steps + kSteps - 1) / kSteps * kHeaderBytes<P>;
  }
  return bytes;
}

class PlainGroups;

struct GemmTile {
  const void* left;
  std::size_t left_stride;  // bytes
  const std::byte* right;
  std::size_t panel_bytes;  // from panel to panel
  std::size_t steps;
  float* sums;  // [rows][vectors][kLanes]
  bool first;   // the chain begins here
  // Weights to prefetch while this tile is computed: for each line of weights that is read, a line
  // prefetch_stride bytes further.
  const std::byte* prefetch;
  std::size_t prefetch_stride;
  std::size_t prefetch_panel_bytes;  // from panel to panel there
  const PlainGroups* plain;          // of each panel of compressed weights
  const IntegerGroup* groups;        // of quantised rows, from the tile's first step on
  std::size_t group_stride;
};

// The rows of a tile. Four rows share a pointer, because a pointer for each row would not fit the
// registers.
template <int Rows>
class LeftRows {
 public:
  LeftRows(const void* first, std::size_t stride) : stride_(stride), thrice_(3 * stride) {
    __asm__(""
            : "+r"(stride_), "+r"(thrice_));  // else the compiler computes the offsets of all rows
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

// What advances from step to step.
template <int Rows>
struct TileCursor {
  explicit TileCursor(const GemmTile& tile)
      : left(tile.left, tile.left_stride), right(tile.right), prefetch(tile.prefetch) {}
  LeftRows<Rows> left;
  const std::byte* right;
  const std::byte* prefetch;
};

template <class P>
[[gnu::always_inline]] inline typename P::Right LoadPart(const typename P::Weight* from, int part) {
  if constexpr (P::kParts == 1) {
    return P::LoadRight(from);
  } else {
    return P::LoadRight(from, part);
  }
}

template <int Panels, _mm_hint Hint = _MM_HINT_T1>
[[gnu::always_inline]] inline void PrefetchWeights(const std::byte*& prefetch, const GemmTile& tile,
                                                   std::size_t bytes) {
#pragma GCC unroll 2
  for (std::size_t line = 0; line < bytes; line += kLine, prefetch += tile.prefetch_stride) {
#pragma GCC unroll 2
    for (int p = 0; p < Panels; ++p) {
      _mm_prefetch(reinterpret_cast<const char*>(prefetch + static_cast<std::size_t>(p) *
                                                                tile.prefetch_panel_bytes),
                   Hint);
    }
  }
}

// Vector v of the tile's panels. The first panel is at `right`.
[[gnu::always_inline]] inline const std::byte* VectorAt(const GemmTile& tile,
                                                        const std::byte* right, int v,
                                                        std::size_t vector_bytes) {
  const auto panel = static_cast<std::size_t>(v) / kPanelVectors;
  const auto vector = static_cast<std::size_t>(v) % kPanelVectors;
  return right + panel * tile.panel_bytes + vector * vector_bytes;
}

template <class P, int Rows, int Vectors, class Sum>
[[gnu::always_inline]] inline void RunSteps(Sum (&sums)[Rows][Vectors], const GemmTile& tile,
                                            TileCursor<Rows>& at, std::size_t steps) {
  using Activation = typename P::Activation;
  constexpr int kPanels = Vectors / static_cast<int>(kPanelVectors);
  for (std::size_t step = 0; step < steps; ++step) {
    PrefetchWeights<kPanels>(at.prefetch, tile, kStepBytes<P>);
#pragma GCC unroll 2
    for (int part = 0; part < P::kParts; ++part) {
      typename P::Right columns[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        const std::byte* from =
            VectorAt(tile, at.right, v, kLanes * P::kPack * sizeof(typename P::Weight));
        columns[v] = LoadPart<P>(reinterpret_cast<const typename P::Weight*>(from), part);
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

// `Count` steps of a product with StepRow.
template <class P, int Count, int Rows, int Vectors>
[[gnu::always_inline]] inline void StepRows(Ints (&sums)[Rows][Vectors], const GemmTile& tile,
                                            TileCursor<Rows>& at) {
  constexpr int kPanels = Vectors / static_cast<int>(kPanelVectors);
#pragma GCC unroll 8
  for (int step = 0; step < Count; ++step) {
    PrefetchWeights<kPanels>(at.prefetch, tile, kStepBytes<P>);
    __asm__(""
            : "+r"(at.prefetch));  // else the compiler keeps multiples of its stride in registers
    Ints columns[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      const std::byte* right = at.right + static_cast<std::size_t>(step) * kStepBytes<P>;
      columns[v] = LoadInts(VectorAt(tile, right, v, kLine));
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      P::StepRow(sums[i], at.left.Row(i) + static_cast<std::size_t>(step) * P::kLeft, columns);
    }
  }
  at.left.Advance(Count * P::kLeft);
  at.right += Count * kStepBytes<P>;
}

template <StepsRows P, int Rows, int Vectors>
[[gnu::always_inline]] inline void RunSteps(Ints (&sums)[Rows][Vectors], const GemmTile& tile,
                                            TileCursor<Rows>& at, std::size_t steps) {
  std::size_t step = 0;
  for (; step + P::kUnrolled <= steps; step += P::kUnrolled) {
    StepRows<P, P::kUnrolled>(sums, tile, at);
  }
  for (; step < steps; ++step) StepRows<P, 1>(sums, tile, at);
}

template <int Vectors>
inline float* SumsOf(const GemmTile& tile, int row, int vector) {
  return tile.sums + static_cast<std::size_t>(row * Vectors + vector) * kLanes;
}

// Loads the partial sums of the block before, or zeros.
template <int Rows, int Vectors>
[[gnu::always_inline]] inline void LoadSums(const GemmTile& tile, Vec (&sums)[Rows][Vectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      sums[i][v] = tile.first ? Zero() : Load(SumsOf<Vectors>(tile, i, v));
    }
  }
}

template <int Rows, int Vectors>
[[gnu::always_inline]] inline void StoreSums(const GemmTile& tile,
                                             const Vec (&sums)[Rows][Vectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) Store(SumsOf<Vectors>(tile, i, v), sums[i][v]);
  }
}

// A tile of float32 sums.
template <class P, int Rows, int Vectors>
struct FloatTile {
  static void Run(const GemmTile& tile) {
    Vec sums[Rows][Vectors];
    LoadSums(tile, sums);
    TileCursor<Rows> at(tile);
    RunSteps<P>(sums, tile, at, tile.steps);
    StoreSums(tile, sums);
  }
};

// A tile of integer sums, group by group of K.
template <class P, int Rows, int Vectors>
struct IntegerTile {
  static void Run(const GemmTile& tile) {
    constexpr std::size_t kSteps = kIntegerGroup / P::kPack;
    TileCursor<Rows> at(tile);
    const IntegerGroup* group = tile.groups;
    for (std::size_t step = 0; step < tile.steps; step += kSteps, ++group) {
      const std::size_t steps = tile.steps - step < kSteps ? tile.steps - step : kSteps;
      RunGroup(tile, at, steps, group, tile.first && step == 0);
    }
  }

 private:
  [[gnu::always_inline]] static void RunGroup(const GemmTile& tile, TileCursor<Rows>& at,
                                              std::size_t steps, const IntegerGroup* group,
                                              bool first) {
    Ints sums[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Ints offset =
          GroupScales<P> ? FillInts(0)
                         : FillInts(group[static_cast<std::size_t>(i) * tile.group_stride].offset);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[i][v] = offset;
    }
    const std::byte* scales = at.right;
    if constexpr (GroupScales<P>) {
      constexpr std::size_t kBytes = kPanel * sizeof(float);
      PrefetchWeights<Vectors / static_cast<int>(kPanelVectors)>(at.prefetch, tile, kBytes);
      at.right += kBytes;
    }
    RunSteps<P>(sums, tile, at, steps);
    Join(sums, tile, scales, group, first);
  }

  // Adds the sums of a group to those of the groups before.
  [[gnu::always_inline]] static void Join(const Ints (&sums)[Rows][Vectors], const GemmTile& tile,
                                          const std::byte* scales, const IntegerGroup* group,
                                          bool first) {
    Vec columns[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      if constexpr (GroupScales<P>) {
        columns[v] =
            Load(reinterpret_cast<const float*>(VectorAt(tile, scales, v, kLanes * sizeof(float))));
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const Vec scale = Fill(group[static_cast<std::size_t>(i) * tile.group_stride].scale);
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        float* to = SumsOf<Vectors>(tile, i, v);
        const Vec both = GroupScales<P> ? Multiply(scale, columns[v]) : scale;
        Store(to, MultiplyAdd(ToFloats(sums[i][v]), both, first ? Zero() : Load(to)));
      }
    }
  }
};

}  // namespace
}  // namespace penstock::shard::cpu
