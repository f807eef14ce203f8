// The products of int4 weights and their register tile (formats.h says how weights and activations
// are quantised). Internal to the including file.
//
// The sum of a group is an integer; zero point, scale of the weights and scale of the row join it
// as float32. (value - zero) * row is exact, since it needs 17 bits, so only the chain of
// fused multiply-adds over the groups rounds: it is the same on every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/formats/format_kernels.h"
#include "shard/backend/cpu/formats/kernels/gemm_tile.h"

namespace penstock::shard::cpu {
namespace {

// What the products have in common. A step is eight K of each column in four bytes: byte i has K i
// in its lower half and K i + 4 in its upper half.
struct Int4Product {
  using Activation = std::byte;
  using Weight = std::uint8_t;
  static constexpr bool kNibbles = true;
  static constexpr std::size_t kPack = kInt4Pack;
  static constexpr float kLargest = 127.0f;  // of a row's integers
  static constexpr std::size_t kLeft = 8;    // bytes of a row, in the order of K
  static constexpr int kSpare = 6;
  static void StoreRow(std::byte* to, Ints values) { StoreBytes(to, values); }
};

// For every instruction set. Products of bytes are added in pairs to 16-bit integers: those of a
// group reach 8 * 2 * 15 * 127 = 30,480.
struct PairsOfInt4 : Int4Product {
  template <int Vectors>
  [[gnu::always_inline]] static void StepRow(Ints (&sums)[Vectors], const std::byte* left,
                                             const Ints (&columns)[Vectors]) {
    std::int32_t four;
    __builtin_memcpy(&four, left, sizeof four);
    const Ints row = FillInts(four);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      sums[v] = AddShorts(sums[v], MultiplyBytePairs(columns[v], row));
    }
  }
  static Ints Whole(Ints sums) { return MultiplyPairs(sums, OnesOfShorts()); }
};

template <class P, int Rows, int Vectors>
struct Int4Tile {
  static void Run(const GemmTile& tile) {
    constexpr std::size_t kSteps = kIntegerGroup / P::kPack;
    TileCursor<Rows> at(tile);
    const IntegerGroup* rows = tile.groups;
    for (std::size_t step = 0; step < tile.steps; step += kSteps) {
      PrefetchWeights<kPanels>(at.prefetch, tile, kHeaderBytes<P>);
      const std::byte* header = at.right;
      at.right += kHeaderBytes<P>;
      const std::size_t end = tile.steps - step < kSteps ? tile.steps - step : kSteps;
      for (std::size_t begin = 0; begin < end; begin += kGroupSteps, ++rows) {
        const bool first = tile.first && step == 0 && begin == 0;
        RunGroup(tile, at, end - begin, header + begin / kGroupSteps * kScaleBytes,
                 header + kGroups * kScaleBytes + begin / kGroupSteps * kZeroBytes, rows, first);
      }
    }
  }

 private:
  static constexpr int kPanels = Vectors / static_cast<int>(kPanelVectors);
  static constexpr std::size_t kGroupSteps = kInt4Group / P::kPack;
  static constexpr std::size_t kGroups = kIntegerGroup / kInt4Group;
  static constexpr std::size_t kScaleBytes = kPanel * sizeof(std::uint16_t);
  static constexpr std::size_t kZeroBytes = kPanel / 2;

  // `steps` are those that are left.
  [[gnu::always_inline]] static void RunGroup(const GemmTile& tile, TileCursor<Rows>& at,
                                              std::size_t steps, const std::byte* scales,
                                              const std::byte* zeros, const IntegerGroup* rows,
                                              bool first) {
    Ints sums[Rows][Vectors];
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sums[i][v] = FillInts(0);
    }
    if (steps >= kGroupSteps) [[likely]] {
#pragma GCC unroll 4
      for (std::size_t step = 0; step < kGroupSteps; ++step) Step(sums, tile, at);
    } else {
      for (std::size_t step = 0; step < steps; ++step) Step(sums, tile, at);
    }
    Join(sums, tile, scales, zeros, rows, first);
  }

  [[gnu::always_inline]] static void Step(Ints (&sums)[Rows][Vectors], const GemmTile& tile,
                                          TileCursor<Rows>& at) {
    PrefetchWeights<kPanels>(at.prefetch, tile, kStepBytes<P>);
    Ints packed[Vectors], columns[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      packed[v] = LoadInts(VectorAt(tile, at.right, v, kLanes * P::kPack / 2));
      columns[v] = LowerNibbles(packed[v]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) P::StepRow(sums[i], at.left.Row(i), columns);
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) columns[v] = UpperNibbles(packed[v]);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) P::StepRow(sums[i], at.left.Row(i) + 4, columns);
    at.left.Advance(P::kLeft);
    at.right += kStepBytes<P>;
  }

  // Adds the sums of a group to those of the groups before.
  [[gnu::always_inline]] static void Join(const Ints (&sums)[Rows][Vectors], const GemmTile& tile,
                                          const std::byte* scales, const std::byte* zeros,
                                          const IntegerGroup* rows, bool first) {
    Vec scale[Vectors], zero[Vectors];
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) {
      scale[v] = LoadHalves(VectorAt(tile, scales, v, kLanes * sizeof(std::uint16_t)));
      const Ints pair = WidenBytes(VectorAt(tile, zeros, v - v % kPanelVectors, 0));
      zero[v] = ToFloats(v % kPanelVectors == 0 ? LowerNibbles(pair) : UpperNibbles(pair));
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const IntegerGroup& row = rows[static_cast<std::size_t>(i) * tile.group_stride];
      const Vec row_scale = Fill(row.scale);
      const Vec negative_sum = ToFloats(FillInts(row.offset));
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        float* to = SumsOf<Vectors>(tile, i, v);
        const Vec exact = MultiplyAdd(zero[v], negative_sum, ToFloats(P::Whole(sums[i][v])));
        Store(to, MultiplyAdd(exact, Multiply(row_scale, scale[v]), first ? Zero() : Load(to)));
      }
    }
  }
};

}  // namespace
}  // namespace penstock::shard::cpu
