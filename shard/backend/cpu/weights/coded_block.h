// bfloat16 weights in 12 bits each, without loss. A bfloat16 is two bytes: the lower holds the last
// bit of the exponent and the mantissa, any of 256 values about as often as any other; the upper,
// sign and seven bits of the exponent, is nearly always one of few, since the weights of a matrix
// are of similar size. So the upper bytes are kept as numbers of four bits in a table of 16, and
// the weights whose upper byte is not in it (about one of ten thousand) by themselves. A product of
// few rows takes as long as its weights take to come from memory: a quarter less, then.
//
// A panel of packed weights (packed_matrix.h) is cut into blocks of kCodedPlain bytes, the last one
// shorter. A block is its CodedHeader, and for each group of 256 bytes, lines 0 to 3 of 64 bytes:
//   64 bytes   numbers: byte j has that of weight j of lines 0 and 1 in its lower half, that of
//              weight j of lines 2 and 3 in its upper one
//   64 bytes   the lower bytes of lines 0 and 1
//   64 bytes   the lower bytes of lines 2 and 3
// Weight j of two lines: of each 16, the first 8 are of 16 bytes of the one line, the last 8 of the
// same 16 bytes of the other, as instructions that interleave bytes want them.
//
// That exponents of weights need few bits: Zhang et al., DFloat11 (2025, arXiv:2504.11651), whose
// code is Huffman's; here it is one that a few vector instructions undo.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace penstock::shard::cpu {

inline constexpr std::size_t kCodedPlain = 8192;      // bytes of weights of a block
inline constexpr std::size_t kCodedGroupPlain = 256;  // of a group
inline constexpr std::size_t kCodedGroupBytes = kCodedGroupPlain / 4 * 3;
inline constexpr std::size_t kMostPatches = 10;
inline constexpr std::uint16_t kRawBlock = 0xffff;  // as `patches`: the block is kept as it was

struct CodedPatch {
  std::uint16_t weight = 0;  // index in the block; ascending
  std::uint16_t value = 0;
};

struct CodedHeader {
  std::uint8_t high[16] = {};  // upper bytes
  std::uint16_t patches = 0;   // how many, or kRawBlock
  std::uint16_t unused = 0;
  std::uint32_t raw = 0;  // of a raw block, which of RawBlocks
  CodedPatch patch[kMostPatches] = {};
};

static_assert(sizeof(CodedHeader) == 64);

// Of so many bytes of packed weights, a multiple of kCodedGroupPlain.
constexpr std::size_t CodedBlocks(std::size_t plain) {
  return (plain + kCodedPlain - 1) / kCodedPlain;
}
constexpr std::size_t CodedBytes(std::size_t plain) {
  return CodedBlocks(plain) * sizeof(CodedHeader) + plain / kCodedGroupPlain * kCodedGroupBytes;
}

// Room for blocks that cannot be coded, kCodedPlain bytes each.
// Threading: Add from any thread.
class RawBlocks {
 public:
  RawBlocks() = default;
  RawBlocks(std::byte* memory, std::size_t blocks) : memory_(memory), blocks_(blocks) {}

  // Its number; none when there is no room left.
  std::optional<std::uint32_t> Add(const std::byte* plain, std::size_t bytes);

 private:
  std::byte* memory_ = nullptr;
  std::size_t blocks_ = 0;
  std::atomic<std::size_t> used_ = 0;
};

// Codes `bytes` of packed weights, at most a block. False: it must be kept raw, and there is no
// room.
bool CodeBlock(const std::byte* plain, std::size_t bytes, RawBlocks& raw, std::byte* out);

// Weight `index` of a coded panel.
std::uint16_t CodedWeight(const std::byte* panel, std::size_t index, const std::byte* raw);

}  // namespace penstock::shard::cpu
