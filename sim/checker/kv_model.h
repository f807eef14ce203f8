// The checker's model of the blocks of one KV group, built from plans and results alone. It knows
// which sequences hold a block, which one may write it, and the token history that each position
// holds.
//
// Only the sequence to which a free block was appended may write it. A sequence may read only
// positions that an earlier plan computes and that hold its own tokens. A plan tells the contents
// of prompt positions, a result those of decoded positions.
//
// In a KV group with a window a sequence holds no block before the window of its next row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "sim/checker/findings.h"
#include "sim/token_source.h"

namespace penstock::sim {

// The number of blocks that hold `tokens` tokens.
inline std::uint64_t BlocksFor(std::uint64_t tokens, std::uint32_t block_size) {
  return (tokens + block_size - 1) / block_size;
}

// The blocks of a sequence.
struct KvTable {
  SequenceId sequence;
  std::vector<BlockId> blocks;         // of KV group 0
  std::vector<BlockId> window_blocks;  // of the group with a window; kNoBlock before the window
  std::uint32_t cached_length = 0;     // leading positions that other sequences computed
  std::vector<History> histories;      // of each position whose token is known
};

class KvModel {
 public:
  // Of KV group 0, or of the group in which a row reads `window` positions.
  KvModel(std::uint32_t blocks, std::uint32_t block_size, std::uint32_t window = 0);

  // The block becomes the next entry of the table.
  void Append(KvTable& table, BlockId block, Findings& findings);
  void Copy(BlockId from, BlockId to, const KvTable& table, Findings& findings);
  // Records that the sequence's K and V of the position are now in its block.
  void Write(const KvTable& table, std::uint32_t position, Findings& findings);
  // This plan and all later ones begin at or after the position.
  void MoveTo(KvTable& table, std::uint64_t position);
  // Checks that the cached positions that a row reads hold the history of the table's sequence.
  void CheckPrefix(const KvTable& table, Findings& findings) const;
  // Checks that the table covers this many positions.
  void NeedPositions(const KvTable& table, std::uint64_t positions, Findings& findings) const;

  // The sequence failed. The blocks that it wrote are wrong, unless another sequence holds them.
  void Invalidate(const KvTable& table);
  // The sequence ended. Plans in flight may still use its blocks.
  void Retire(const KvTable& table);
  // No plan in flight uses the blocks for this sequence.
  void Reclaim(const KvTable& table);

  std::uint32_t window() const { return window_; }
  // Blocks that the sequence holds.
  std::uint32_t Held(const KvTable& table) const;
  std::uint32_t used() const { return used_; }
  std::uint32_t retiring() const { return retiring_; }
  // The sum over all blocks of their ended holders.
  std::uint32_t retired_holders() const { return retired_holders_; }
  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t block_size() const { return block_size_; }

 private:
  struct Block {
    std::vector<History> cells;  // 0 = not written
    SequenceId writer;
    std::uint32_t live = 0;      // running holders
    std::uint32_t retiring = 0;  // ended holders that plans in flight name
  };

  void Count(const Block& block, int sign);
  bool Exists(BlockId block, Findings& findings) const;
  // Entries of a table before the window of a row at the position.
  std::size_t Before(std::uint64_t position) const;
  const std::vector<BlockId>& BlocksOf(const KvTable& table) const {
    return window_ > 0 ? table.window_blocks : table.blocks;
  }
  std::vector<BlockId>& BlocksOf(KvTable& table) const {
    return window_ > 0 ? table.window_blocks : table.blocks;
  }

  std::uint32_t block_size_;
  std::uint32_t window_;
  std::vector<Block> blocks_;
  std::uint32_t used_ = 0;
  std::uint32_t retiring_ = 0;
  std::uint32_t retired_holders_ = 0;
};

}  // namespace penstock::sim
