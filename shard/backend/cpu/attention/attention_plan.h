// Divides the attention of a step among the threads. Query rows form tiles; an item is a tile and a
// K/V head, and each thread gets items of about equal cost. If there are too few items (one long
// sequence, few heads), the partitions of an item are divided as well. One thread then merges their
// results from left to right, so the bits are those of a single thread.
//
// The caller's thread builds it once for each step and attention window; all threads read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shard/backend/backend.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/model/program.h"

namespace penstock::shard::cpu {

// Rows of one sequence whose queries are computed together.
struct TokenTile {
  std::size_t segment = 0;
  std::size_t row = 0;       // of the batch
  std::size_t position = 0;  // of the first token
  std::size_t tokens = 0;
  bool candidates = false;  // all tokens are at `position`
  std::size_t end = 0;      // positions before it are seen by some token
  std::size_t first_partition = 0;
  std::size_t end_partition = 0;
  std::uint64_t cost = 0;  // for one head
};

// Positions [first, end).
struct PositionRange {
  std::size_t first = 0;
  std::size_t end = 0;
};

// A place in the list of (tile, head, partition).
struct AttentionCursor {
  std::size_t item = 0;  // tile * kv_heads + head
  std::size_t partition = 0;
};

// An item that several threads compute. The results of its partitions have consecutive slots.
struct SplitItem {
  std::size_t item = 0;
  std::size_t first_slot = 0;
};

struct AttentionShape {
  std::size_t kv_heads = 1;
  std::size_t group = 1;   // query heads per K/V head
  std::size_t window = 0;  // 0 = all
  std::size_t chunk = 0;   // the same
  bool both_ways = false;  // as in AttentionOp
  std::size_t threads = 1;
  std::size_t slots = 0;  // for partial results
};

// The heads of a plan. All query heads of a cache of latents read its one head; they are divided in
// groups, so that there is work for several threads.
struct PlanHeads {
  std::size_t kv_heads = 1;
  std::size_t group = 1;
};
PlanHeads HeadsOfPlan(const Program& program, const AttentionOp& op);

// Tokens of a tile: enough to use each K and V that is read several times.
constexpr std::size_t TileTokens(std::size_t group) {
  return group >= kTileRows ? 1 : kTileRows / group;
}

class AttentionPlan {
 public:
  void Build(const AttentionShape& shape, std::span<const RaggedSegment> segments);

  const TokenTile& Tile(std::size_t item) const { return tiles_[item / shape_.kv_heads]; }
  std::size_t Head(std::size_t item) const { return item % shape_.kv_heads; }
  // Thread t computes [Begin(t), Begin(t + 1)).
  const AttentionCursor& Begin(std::size_t thread) const { return bounds_[thread]; }
  std::span<const SplitItem> splits() const { return splits_; }
  // Null unless the item is in splits().
  const SplitItem* FindSplit(std::size_t item) const;
  const AttentionShape& shape() const { return shape_; }
  // The positions of a partition that some token of the tile sees.
  PositionRange PositionsOf(const TokenTile& tile, std::size_t partition) const;

 private:
  void AddTiles(std::span<const RaggedSegment> segments);
  std::uint64_t PartitionCost(const TokenTile& tile, std::size_t partition) const;
  AttentionCursor Locate(std::uint64_t cost, bool within_items) const;
  bool Divide(bool within_items);

  AttentionShape shape_;
  std::vector<TokenTile> tiles_;
  std::vector<std::uint64_t> before_;  // cost of all heads of the tiles before each
  std::vector<AttentionCursor> bounds_;
  std::vector<SplitItem> splits_;
};

}  // namespace penstock::shard::cpu
