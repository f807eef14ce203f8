// Even shares of work for the threads of a pool. Bits do not depend on which thread computes a
// part, so load alone decides the shares.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::shard::cpu {

struct Share {
  std::size_t first = 0;
  std::size_t count = 0;
  friend bool operator==(const Share&, const Share&) = default;
};

// Part `index` of `total` items; sizes differ by at most one.
constexpr Share EvenShare(std::size_t total, std::size_t parts, std::size_t index) {
  const std::size_t first = total * index / parts;
  return {first, total * (index + 1) / parts - first};
}

// A GEMM divided in two directions.
struct GridShare {
  Share rows;     // in tiles of rows
  Share columns;  // in units of columns
  Share peers;    // the threads with the same rows
};

// Divides rows only if columns alone would leave threads idle or uneven, because each group of rows
// reads the weights again.
GridShare SplitGrid(std::size_t row_tiles, std::size_t column_units, std::size_t threads,
                    std::size_t thread);

}  // namespace penstock::shard::cpu
