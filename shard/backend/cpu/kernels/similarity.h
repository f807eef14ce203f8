// Products of rows with a cache that holds only keys (contrastive search). Internal to the
// including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {
namespace {

// The scores of `Rows` rows for one vector of positions.
template <class P, int Rows>
void SimilarRows(const typename P::Activation* rows, std::size_t stride, std::size_t dim,
                 const typename P::Weight* keys, std::size_t key_stride, float* scores) {
  Vec sums[Rows][1];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) sums[i][0] = Zero();
  Accumulate<P, Rows, 1>(sums, rows, stride, keys, 0, key_stride, dim / P::kPack);
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
    Store(scores + static_cast<std::size_t>(i) * kScoreStride, sums[i][0]);
  }
}

template <class P>
void Similarity(const SimilarityArgs& args) {
  using Activation = typename P::Activation;
  using Weight = typename P::Weight;
  using Function =
      void (*)(const Activation*, std::size_t, std::size_t, const Weight*, std::size_t, float*);
  static constexpr Function kByRows[] = {SimilarRows<P, 1>, SimilarRows<P, 2>, SimilarRows<P, 3>,
                                         SimilarRows<P, 4>, SimilarRows<P, 5>, SimilarRows<P, 6>};
  const HeadCache& plane = args.plane;
  const std::size_t size = plane.block_size;
  for (std::size_t position = args.first; position < args.end; position += size) {
    const std::byte* base = plane.base + args.blocks[position / size] * plane.block_bytes;
    const std::size_t count = args.end - position < size ? args.end - position : size;
    for (std::size_t lane = 0; lane < count; lane += kLanes) {
      for (std::size_t row = 0; row < args.count; row += kRowTile) {
        const std::size_t rows = args.count - row < kRowTile ? args.count - row : kRowTile;
        kByRows[rows - 1](static_cast<const Activation*>(args.rows) + row * args.stride,
                          args.stride, plane.key_dim,
                          reinterpret_cast<const Weight*>(base) + lane * P::kPack, size * P::kPack,
                          args.scratch);
        for (std::size_t i = 0; i < rows; ++i) {
          const Vec scores =
              KeepLanes(Load(args.scratch + i * kScoreStride), 0,
                        static_cast<std::ptrdiff_t>(count - lane), Fill(kMinusInfinity));
          const float best = MaxOfLanes(scores);
          if (best > args.largest[row + i]) args.largest[row + i] = best;
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::shard::cpu
