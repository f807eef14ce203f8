// The blocks of one sequence in the KV group with a window (KV group 1). Entry i of the table has
// the positions of entry i of group 0's BlockTable, as long as a row may read them:
//
//   first the entries of a match: kNoBlock before the window of the first row, then blocks that
//   are attached to the nodes of the match;
//   then blocks that the sequence draws and writes.
//
// MoveTo releases the entries that no later plan reads. So the sequence holds at most the blocks of
// its window and of the positions that its plans in flight write: its claim.
//
// Without such a group every call does nothing. The owner must call Retire and then Reclaim before
// it destroys a table that holds blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "scheduler/kv/block_cache.h"

namespace penstock::scheduler {

class WindowTable {
 public:
  static constexpr std::uint32_t kGroup = 1;

  // Returns false if that many more blocks cannot be claimed.
  bool Claim(BlockCache& cache, std::uint32_t blocks);
  // Takes the attached blocks of a match. The claim covers them.
  void Adopt(BlockCache& cache, const PrefixMatch& match);
  // All plans from the next one on begin at or after this position.
  void MoveTo(BlockCache& cache, std::uint64_t position);
  // Like BlockTable::GrowTo.
  void GrowTo(BlockCache& cache, std::uint64_t tokens, SlotId slot, std::vector<BlockOp>& ops);

  void Retire(BlockCache& cache);
  void Reclaim(BlockCache& cache);

  // kNoBlock where the sequence holds none.
  const std::vector<BlockId>& blocks() const { return blocks_; }
  std::uint32_t held() const { return static_cast<std::uint32_t>(blocks_.size()) - released_; }
  std::uint32_t claim() const { return claim_; }

 private:
  std::uint32_t claim_ = 0;
  std::uint32_t released_ = 0;  // leading entries without a block
  std::uint32_t appended_ = 0;  // entries that plans have sent to the shards
  std::vector<BlockId> blocks_;
};

}  // namespace penstock::scheduler
