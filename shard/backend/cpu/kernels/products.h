// How a step of a product multiplies, for each pair of types, and a small register tile. Internal
// to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::shard::cpu {
namespace {

struct Float32Product {
  using Activation = float;
  using Weight = float;
  using Right = Vec;
  static constexpr std::size_t kPack = 1;
  static constexpr std::size_t kLeft = kPack;
  static constexpr int kParts = 1;
  static constexpr int kSpare = 2;
  static Right LoadRight(const float* from) { return Load(from); }
  static Vec Step(Vec sum, const float* left, Right right) {
    return MultiplyAdd(Fill(*left), right, sum);
  }
};

// bfloat16 weights widened to float32 (exact); activations float32.
struct WidenedProduct {
  using Activation = float;
  using Weight = std::uint16_t;
  using Right = Vec;
  static constexpr std::size_t kPack = 1;
  static constexpr std::size_t kLeft = kPack;
  static Right LoadRight(const std::uint16_t* from) { return LoadBf16(from); }
  static Vec Step(Vec sum, const float* left, Right right) {
    return MultiplyAdd(Fill(*left), right, sum);
  }
};

// The same chain from pairs of K that lie together. A shift or a mask widens half a vector, which
// costs less than the conversion of single values.
struct WidenedPairs {
  using Activation = float;
  using Weight = std::uint16_t;
  using Right = Vec;
  static constexpr std::size_t kPack = 2;
  static constexpr std::size_t kLeft = kPack;
  static constexpr int kParts = 2;
  static constexpr int kSpare = 2;
  static Right LoadRight(const std::uint16_t* from, int part) {
    const Ints pairs = LoadInts(from);
    return part == 0 ? LowerHalves(pairs) : UpperHalves(pairs);
  }
  static Vec Step(Vec sum, const float* left, Right right) {
    return MultiplyAdd(Fill(*left), right, sum);
  }
};

// sums[i][v] += left row i times right vector v over `steps` steps, each one chain in ascending
// order whatever Rows and Vectors are. left_stride in activations, right_stride in weights from
// step to step.
template <class P, int Rows, int Vectors, class Sum>
[[gnu::always_inline]] inline void Accumulate(Sum (&sums)[Rows][Vectors],
                                              const typename P::Activation* left,
                                              std::size_t left_stride,
                                              const typename P::Weight* right,
                                              std::size_t vector_stride, std::size_t right_stride,
                                              std::size_t steps) {
  for (std::size_t step = 0; step < steps; ++step) {
    typename P::Right columns[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      columns[v] = P::LoadRight(right + static_cast<std::size_t>(v) * vector_stride);
    }
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const typename P::Activation* row = left + static_cast<std::size_t>(i) * left_stride;
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[i][v] = P::Step(sums[i][v], row, columns[v]);
    }
    left += P::kLeft;
    right += right_stride;
  }
}

// The rows of tile `index` when `rows` rows are divided into `tiles` tiles, the fewest with at most
// `most` rows each.
struct TileRows {
  std::size_t first;
  std::size_t count;
};
inline std::size_t TileCount(std::size_t rows, std::size_t most = kRowTile) {
  return (rows + most - 1) / most;
}
inline TileRows TileAt(std::size_t rows, std::size_t tiles, std::size_t index) {
  const std::size_t first = rows * index / tiles;
  return {first, rows * (index + 1) / tiles - first};
}

}  // namespace
}  // namespace penstock::shard::cpu
