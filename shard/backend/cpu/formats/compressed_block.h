// bfloat16 weights in 12 bits each, without loss. The lower byte of a bfloat16 holds the last bit
// of the exponent and the mantissa; its 256 values are about equally frequent. The upper byte, the
// sign and seven bits of the exponent, has few frequent values, because the weights of a matrix
// have similar magnitudes. So a table holds 16 upper bytes, and each weight has an index of four
// bits into it. Weights with another upper byte (about one in ten thousand) are stored separately.
// The time of a GEMM of few rows is that of reading the weights from memory. This format takes a
// quarter off it.
//
// A panel of packed weights (packed_matrix.h) is divided into blocks of kPlainBlockBytes bytes; the
// last one may be shorter. A block is a CompressedHeader and, for each group of 256 bytes, that is
// of four lines of 64 bytes:
//   64 bytes   indexes: byte j has that of weight j of lines 0 and 1 in its lower half, and that of
//              weight j of lines 2 and 3 in its upper half
//   64 bytes   the lower bytes of lines 0 and 1
//   64 bytes   the lower bytes of lines 2 and 3
// The order within two lines suits instructions that interleave bytes: of each 16 weights, the
// first 8 come from 16 bytes of the first line, the last 8 from the same 16 bytes of the second.
//
// Zhang et al., DFloat11 (2025, arXiv:2504.11651), observed that exponents of weights need few
// bits. They use a Huffman code; a few vector instructions decode this one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::shard::cpu {

inline constexpr std::size_t kPlainBlockBytes = 8192;  // bytes of weights of a block
inline constexpr std::size_t kPlainGroupBytes = 256;   // of a group
inline constexpr std::size_t kCompressedGroupBytes = kPlainGroupBytes / 4 * 3;
inline constexpr std::size_t kMostPatches = 10;
inline constexpr std::uint16_t kRawBlock = 0xffff;  // as `patches`: plain, in the overflow

struct WeightPatch {
  std::uint16_t weight = 0;  // index in the block; ascending
  std::uint16_t value = 0;
};

struct CompressedHeader {
  std::uint8_t high[16] = {};  // upper bytes
  std::uint16_t patches = 0;   // how many, or kRawBlock
  std::uint16_t unused = 0;
  std::uint32_t raw = 0;  // index in the overflow of a raw block
  WeightPatch patch[kMostPatches] = {};
};

static_assert(sizeof(CompressedHeader) == 64);

// For `plain` bytes of packed weights, a multiple of kPlainGroupBytes.
constexpr std::size_t CompressedBlocks(std::size_t plain) {
  return (plain + kPlainBlockBytes - 1) / kPlainBlockBytes;
}
constexpr std::size_t CompressedBytes(std::size_t plain) {
  return CompressedBlocks(plain) * sizeof(CompressedHeader) +
         plain / kPlainGroupBytes * kCompressedGroupBytes;
}

class Overflow;  // weight_format.h

// Compresses `bytes` of plain packed weights, at most a block. False: the block must go to the
// overflow, which is used up.
bool CompressBlock(const std::byte* plain, std::size_t bytes, Overflow& overflow, std::byte* out);

// Weight `index` of a compressed panel.
std::uint16_t CompressedWeight(const std::byte* panel, std::size_t index,
                               const std::byte* overflow);

}  // namespace penstock::shard::cpu
