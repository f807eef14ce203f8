// The checker's own account of one group's KV blocks, built from plans and results alone: who holds
// a block, who may write it, and which token history each position holds.
//
// A block is written by the sequence that it was appended to as a fresh one, and by nobody else; a
// reader may only see positions that an earlier plan computes, with its own tokens in them.
// Contents are known when a plan computes prompt tokens, and when a result says what was sampled
// for decoded ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/plan/group.h"
#include "sim/checker/findings.h"
#include "sim/token_source.h"

namespace penstock::sim {

// What a sequence holds.
struct KvTable {
  SequenceId sequence;
  std::vector<BlockId> blocks;
  std::uint32_t cached_length = 0;  // leading positions computed by others
  std::vector<History> histories;   // of each position whose token is known
};

class KvModel {
 public:
  explicit KvModel(const GroupCapacity& capacity);

  // The block becomes the next entry of the table.
  void Append(KvTable& table, BlockId block, Findings& findings);
  void Copy(BlockId from, BlockId to, const KvTable& table, Findings& findings);
  // The position now holds the table's own history of it.
  void Write(const KvTable& table, std::uint32_t position, Findings& findings);
  // The positions that others computed hold what the table's sequence says.
  void CheckPrefix(const KvTable& table, Findings& findings) const;
  // A row reads and writes inside the table.
  void NeedPositions(const KvTable& table, std::uint64_t positions, Findings& findings) const;

  // The sequence ended; plans in flight may still touch its blocks.
  void Retire(const KvTable& table);
  // No plan in flight touches them for it any more.
  void Reclaim(const KvTable& table);

  std::uint32_t used() const { return used_; }
  std::uint32_t retiring() const { return retiring_; }
  std::uint32_t total() const { return static_cast<std::uint32_t>(blocks_.size()); }
  std::uint32_t block_size() const { return block_size_; }

 private:
  struct Block {
    std::vector<History> cells;  // 0 = not written
    SequenceId writer;
    std::uint32_t live = 0;      // holders that run
    std::uint32_t retiring = 0;  // holders that ended with plans in flight
  };

  void Count(const Block& block, int sign);
  bool Exists(BlockId block, Findings& findings) const;

  std::uint32_t block_size_;
  std::vector<Block> blocks_;
  std::uint32_t used_ = 0;
  std::uint32_t retiring_ = 0;
};

}  // namespace penstock::sim
