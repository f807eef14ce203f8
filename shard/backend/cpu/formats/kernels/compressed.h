// The register tile of a GEMM with compressed weights (compressed_block.h), which it expands in
// registers. Its sums have the bits of FloatTile. Internal to the including file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shard/backend/cpu/formats/compressed_block.h"
#include "shard/backend/cpu/formats/kernels/gemm_tile.h"

namespace penstock::shard::cpu {
namespace {

// A product of compressed weights: it expands half a group, two lines, in registers for the product
// P::Plain.
template <class P>
concept Compressed = requires {
  typename P::Plain;
};

// Steps in a group.
template <class P>
constexpr std::size_t kGroupSteps = kPlainGroupBytes / kStepBytes<P>;

// The groups of one panel's blocks that a tile must read as plain weights, in ascending order:
// groups with patches, and those of raw blocks.
class PlainGroups {
 public:
  struct Group {
    std::uint32_t index;
    const std::byte* weights;
  };
  static constexpr std::uint32_t kEnd = UINT32_MAX;

  PlainGroups() { groups_[0].index = kEnd; }
  const Group* begin() const { return groups_; }

  // Adds those of the block at `block`, which has `groups` groups; the first has index `first`.
  template <class P>
  void Add(const std::byte* block, std::size_t groups, std::size_t first, const std::byte* raw) {
    CompressedHeader header;
    __builtin_memcpy(&header, block, sizeof header);
    if (header.patches == kRawBlock) {
      const std::byte* plain = raw + header.raw * kPlainBlockBytes;
      for (std::size_t i = 0; i < groups; ++i) Append(first + i, plain + i * kPlainGroupBytes);
      return;
    }
    for (std::size_t i = 0; i < header.patches; ++i) {
      const WeightPatch& patch = header.patch[i];
      const std::size_t at = patch.weight * sizeof patch.value;
      const std::size_t group = at / kPlainGroupBytes;
      if (count_ == 0 || groups_[count_ - 1].index != first + group) {
        Expand<P>(block + sizeof header + group * kCompressedGroupBytes, block, plain_[patched_]);
        Append(first + group, plain_[patched_++]);
      }
      __builtin_memcpy(plain_[patched_ - 1] + at % kPlainGroupBytes, &patch.value,
                       sizeof patch.value);
    }
  }

 private:
  void Append(std::size_t index, const std::byte* weights) {
    groups_[count_++] = {static_cast<std::uint32_t>(index), weights};
    groups_[count_].index = kEnd;
  }

  template <class P>
  static void Expand(const std::byte* group, const std::byte* table, std::byte* plain) {
    for (int half = 0; half < 2; ++half, plain += 2 * kLine) {
      typename P::Right lines[2];
      P::ExpandHalf(group, half, P::LoadTable(table), lines);
      __builtin_memcpy(plain, lines, sizeof lines);
    }
  }

  static constexpr std::size_t kMostBlocks = 2;
  Group groups_[kMostBlocks * kPlainBlockBytes / kPlainGroupBytes + 1];
  std::size_t count_ = 0;
  std::size_t patched_ = 0;
  alignas(kLine) std::byte plain_[kMostBlocks * kMostPatches][kPlainGroupBytes];
};

// Adds the products of one step of the inner dimension, for these columns of a panel.
template <class P, int Rows, int Vectors>
[[gnu::always_inline]] inline void StepPanel(Vec (&sums)[Rows][Vectors], int panel,
                                             const LeftRows<Rows>& left, std::size_t step,
                                             const typename P::Right (&columns)[kPanelVectors]) {
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
    const auto* row =
        reinterpret_cast<const typename P::Activation*>(left.Row(i)) + step * P::kLeft;
#pragma GCC unroll 2
    for (std::size_t v = 0; v < kPanelVectors; ++v) {
      Vec& sum = sums[i][static_cast<std::size_t>(panel) * kPanelVectors + v];
      sum = P::Step(sum, row, columns[v]);
    }
  }
}

// `Hint`: into which cache weights are prefetched.
template <class P, int Rows, int Vectors, _mm_hint Hint>
struct CompressedTile {
  static constexpr int kPanels = Vectors / static_cast<int>(kPanelVectors);
  static void Run(const GemmTile& tile) {
    Vec sums[Rows][Vectors];
    LoadSums(tile, sums);
    TileCursor<Rows> at(tile);
    const PlainGroups::Group* plain[kPanels];
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) plain[p] = tile.plain[p].begin();
    const std::size_t groups = tile.steps / kGroupSteps<P>;
    const std::byte* table = nullptr;
    for (std::size_t group = 0, end = 0; group < groups; ++group) {
      if (group == end) {  // a new block
        PrefetchWeights<kPanels, Hint>(at.prefetch, tile, sizeof(CompressedHeader));
        table = at.right;
        at.right += sizeof(CompressedHeader);
        end += kPlainBlockBytes / kPlainGroupBytes;
      }
      PrefetchWeights<kPanels, Hint>(at.prefetch, tile, kCompressedGroupBytes);
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        const std::size_t offset = static_cast<std::size_t>(p) * tile.panel_bytes;
        if (plain[p]->index != group) [[likely]] {
          StepCompressed(sums, p, at.left, at.right + offset, table + offset);
        } else {
          StepPlain(sums, p, at.left, plain[p]->weights);
          ++plain[p];
        }
      }
      at.left.Advance(kGroupSteps<P> * P::kLeft * sizeof(typename P::Activation));
      at.right += kCompressedGroupBytes;
    }
    StoreSums(tile, sums);
  }

 private:
  [[gnu::always_inline]] static void StepCompressed(Vec (&sums)[Rows][Vectors], int panel,
                                                    const LeftRows<Rows>& left,
                                                    const std::byte* group,
                                                    const std::byte* table) {
    const typename P::Table highs = P::LoadTable(table);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      typename P::Right columns[kPanelVectors];
      P::ExpandHalf(group, half, highs, columns);
      StepPanel<P>(sums, panel, left, static_cast<std::size_t>(half), columns);
    }
  }

  [[gnu::always_inline]] static void StepPlain(Vec (&sums)[Rows][Vectors], int panel,
                                               const LeftRows<Rows>& left,
                                               const std::byte* weights) {
#pragma GCC unroll 2
    for (std::size_t step = 0; step < kGroupSteps<P>; ++step) {
      typename P::Right columns[kPanelVectors];
#pragma GCC unroll 2
      for (std::size_t v = 0; v < kPanelVectors;
           ++v, weights += kLanes * P::kPack * sizeof(typename P::Weight)) {
        columns[v] = P::LoadRight(reinterpret_cast<const typename P::Weight*>(weights));
      }
      StepPanel<P>(sums, panel, left, step, columns);
    }
  }
};

}  // namespace
}  // namespace penstock::shard::cpu
