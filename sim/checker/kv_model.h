// The checker's model of one group's KV blocks, built from plans and results alone. It knows which
// sequences hold a block, which one may write it, and the token history that each position holds.
//
// Only the sequence to which a free block was appended may write it. A sequence may read only
// positions that an earlier plan computes and that hold its own tokens. A plan tells the contents
// of prompt positions, a result those of decoded positions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/plan/group.h"
#include "sim/checker/findings.h"
#include "sim/token_source.h"

namespace penstock::sim {

// The blocks of a sequence.
struct KvTable {
  SequenceId sequence;
  std::vector<BlockId> blocks;
  std::uint32_t cached_length = 0;  // leading positions that other sequences computed
  std::vector<History> histories;   // of each position whose token is known
};

class KvModel {
 public:
  explicit KvModel(const GroupCapacity& capacity);

  // The block becomes the next entry of the table.
  void Append(KvTable& table, BlockId block, Findings& findings);
  void Copy(BlockId from, BlockId to, const KvTable& table, Findings& findings);
  // Records that the sequence's K and V of the position are now in its block.
  void Write(const KvTable& table, std::uint32_t position, Findings& findings);
  // Checks that the cached positions hold the history of the table's sequence.
  void CheckPrefix(const KvTable& table, Findings& findings) const;
  // Checks that the table covers this many positions.
  void NeedPositions(const KvTable& table, std::uint64_t positions, Findings& findings) const;

  // The sequence failed: what it wrote and no other sequence holds is wrong.
  void Invalidate(const KvTable& table);
  // The sequence ended. Plans in flight may still use its blocks.
  void Retire(const KvTable& table);
  // No plan in flight uses the blocks for this sequence.
  void Reclaim(const KvTable& table);

  std::uint32_t used() const { return used_; }
  std::uint32_t retiring() const { return retiring_; }
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

  std::uint32_t block_size_;
  std::vector<Block> blocks_;
  std::uint32_t used_ = 0;
  std::uint32_t retiring_ = 0;
};

}  // namespace penstock::sim
