// The padded KV layout as scheduler and shard make it together: what the splitter predicts is what
// the row store allocates, and every row's contents survive being moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/step/decode_sub_batches.h"
#include "scheduler/step/padded_bound.h"
#include "shard/cache/padded/cell_layout.h"
#include "shard/cache/padded/pool_split.h"

namespace penstock::shard {
namespace {

using scheduler::DecodeRow;
using scheduler::DecodeSubBatches;
using scheduler::PaddedBound;
using scheduler::SplitObjective;
using scheduler::SplitRule;

// A store whose positions say which position of which row they hold. Blocks come first, then cells.
class Store {
 public:
  explicit Store(std::uint32_t cells)
      : layout_(cells, kBlockSize * cells, kBlockSize), contents_((kBlockSize + 1) * cells, 0) {}

  // A row that was in no part before is written to blocks first.
  void Arrange(std::vector<CellPart> parts) {
    std::vector<std::vector<BlockId>> tables;
    std::set<SlotId> rows;
    std::uint64_t joined = 0;
    std::uint32_t block = 0;
    for (CellPart& part : parts) {
      for (CellRow& row : part.rows) {
        rows.insert(row.slot);
        if (rows_.contains(row.slot)) continue;
        std::vector<BlockId>& table = tables.emplace_back();
        for (std::uint32_t p = 0; p < row.length; ++p) {
          if (p % kBlockSize == 0) table.emplace_back(block++);
          contents_.at(At(InBlocks(table, p, kBlockSize))) = Content(row.slot, p);
        }
        row.blocks = table;
        joined += row.length;
      }
    }
    rows_ = std::move(rows);
    const auto arranged = layout_.Arrange(parts);
    ASSERT_TRUE(arranged.ok()) << arranged.status();
    const CellLayout::Moves& moves = layout_.moves();
    std::vector<std::uint64_t> moving;
    for (const std::int64_t from : moves.from) moving.push_back(contents_.at(At(from)));
    for (std::size_t i = 0; i < moving.size(); ++i) contents_.at(At(moves.to[i])) = moving[i];
    copied = arranged->copied - joined;
    allocated = arranged->allocated;
  }
  void Write(SlotId slot, std::uint32_t position) {
    contents_.at(layout_.Cell(slot, position)) = Content(slot, position);
  }
  bool Holds(SlotId slot, std::uint32_t length) const {
    for (std::uint32_t p = 0; p < length; ++p) {
      if (contents_.at(layout_.Cell(slot, p)) != Content(slot, p)) return false;
    }
    return true;
  }
  // No two positions of the parts are the same, and all are cells.
  void ExpectDisjoint() const {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ranges;
    for (const CellLayout::Part& part : layout_.parts()) {
      ranges.emplace_back(part.base, part.base + part.Cells());
    }
    std::sort(ranges.begin(), ranges.end());
    std::size_t end = kBlockSize * layout_.cells();
    for (const auto& [first, after] : ranges) {
      ASSERT_LE(end, first);
      end = after;
    }
    ASSERT_LE(end, contents_.size());
  }

  // By the last Arrange.
  std::uint64_t copied = 0;  // cells, those that came from blocks not counted
  std::uint64_t allocated = 0;

 private:
  static constexpr std::uint32_t kBlockSize = 4;

  static std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }
  static std::uint64_t Content(SlotId slot, std::uint32_t position) {
    return (std::uint64_t{slot.value()} + 1) << 32 | position;
  }

  CellLayout layout_;
  std::vector<std::uint64_t> contents_;
  std::set<SlotId> rows_;  // of the last Arrange
};

struct Row {
  std::uint64_t length = 0;  // positions, that of the next step included
  std::uint64_t most = 0;
  bool written = false;
};

// One run of arrivals and exits, admitted by the bound.
class Load {
 public:
  explicit Load(std::uint32_t seed) : random_(seed) {
    rule_.objective = Draw(2) == 0 ? SplitObjective::kSparsity : SplitObjective::kCost;
    rule_.max_splits = 1 + Draw(4);
    rule_.max_sparsity_ppm = Draw(1'000'000);
    cells_ = 200 + Draw(4000);
    launch_ = Draw(1500);
    groups_.emplace(rule_, cells_);
    store_.emplace(cells_);
  }

  void Step() {
    Leave();
    for (auto& [id, row] : rows_) {
      if (row.length < row.most) ++row.length;
    }
    Arrive();
    std::vector<DecodeRow> rows;
    for (const auto& [id, row] : rows_) {
      rows.push_back({SequenceId(id), SlotId(static_cast<std::uint32_t>(id)), row.length, 1,
                      static_cast<std::uint32_t>(rows.size())});
    }
    resplits_ += groups_->Update(rows, launch_);
    std::vector<SegmentGroup> sent;
    groups_->AddGroups(rows, sent);
    Take(sent);
    Check(sent);
  }

  std::uint64_t resplits() const { return resplits_; }
  std::uint64_t copied() const { return copied_; }

 private:
  std::uint32_t Draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }

  void Leave() {
    while (!rows_.empty() && Draw(4) == 0) {
      rows_.erase(std::next(rows_.begin(), Draw(static_cast<std::uint32_t>(rows_.size()))));
    }
  }
  void Arrive() {
    while (Draw(3) == 0) {
      Row row;
      row.length = 1 + Draw(cells_ / 4);
      row.most = row.length + Draw(60);
      PaddedBound bound(rule_.max_splits);
      bound.Add(row.most);
      for (const auto& [id, other] : rows_) bound.Add(other.most);
      if (bound.LeastCells() > cells_) return;
      rows_[++next_] = row;
    }
  }
  // As the shard does: what joins holds all but the position of this step, which is written now.
  void Take(const std::vector<SegmentGroup>& sent) {
    std::vector<CellPart> parts;
    for (const SegmentGroup& group : sent) {
      CellPart& part = parts.emplace_back();
      part.width = group.width;
      for (const SlotId slot : group.rows) {
        const auto length = static_cast<std::uint32_t>(rows_.at(slot.value()).length - 1);
        part.rows.push_back({slot, length, {}});
      }
    }
    store_->Arrange(parts);
    copied_ += store_->copied;
    for (const auto& [id, row] : rows_) {
      store_->Write(SlotId(static_cast<std::uint32_t>(id)),
                    static_cast<std::uint32_t>(row.length - 1));
    }
  }
  void Check(const std::vector<SegmentGroup>& sent) {
    std::uint64_t predicted = 0;
    std::uint64_t tokens = 0;
    for (const SegmentGroup& group : sent) {
      std::uint64_t longest = 0;
      for (const SlotId slot : group.rows) {
        longest = std::max(longest, rows_.at(slot.value()).length);
        tokens += rows_.at(slot.value()).length;
      }
      predicted += longest * group.rows.size();
    }
    ASSERT_EQ(store_->allocated, predicted);
    ASSERT_EQ(groups_->Cells(), predicted);
    ASSERT_EQ(groups_->Tokens(), tokens);
    ASSERT_LE(predicted, cells_) << "the bound of admission holds for every partition taken";
    ASSERT_LE(sent.size(), rule_.max_splits);
    store_->ExpectDisjoint();
    for (const auto& [id, row] : rows_) {
      ASSERT_TRUE(store_->Holds(SlotId(static_cast<std::uint32_t>(id)),
                                static_cast<std::uint32_t>(row.length)))
          << "row " << id;
    }
  }

  std::mt19937 random_;
  SplitRule rule_;
  std::uint32_t cells_ = 0;
  std::uint64_t launch_ = 0;
  std::optional<DecodeSubBatches> groups_;
  std::optional<Store> store_;
  std::map<std::uint64_t, Row> rows_;
  std::uint64_t next_ = 0;
  std::uint64_t resplits_ = 0;
  std::uint64_t copied_ = 0;
};

TEST(PaddedLayout, AllocatedCellsAreThePartitionsPredictionInAThousandRandomRuns) {
  std::uint64_t resplits = 0;
  std::uint64_t copied = 0;
  for (std::uint32_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Load run(seed);
    for (int step = 0; step < 60; ++step) {
      run.Step();
      if (HasFatalFailure()) return;
    }
    resplits += run.resplits();
    copied += run.copied();
  }
  EXPECT_GT(resplits, 3000u) << "the runs must re-split, or they show nothing";
  EXPECT_GT(copied, 0u);
}

std::vector<CellPart> Parts(const std::vector<std::vector<std::uint32_t>>& rows,
                            const std::vector<std::uint32_t>& widths) {
  std::vector<CellPart> parts;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CellPart& part = parts.emplace_back();
    part.width = widths[i];
    for (const std::uint32_t slot : rows[i]) part.rows.push_back({SlotId(slot), widths[i] - 1, {}});
  }
  return parts;
}

TEST(PaddedLayout, AStepThatOnlyLengthensRowsCopiesNothing) {
  Store store(1000);
  store.Arrange(Parts({{1, 2}, {3}}, {10, 20}));
  EXPECT_EQ(store.allocated, 40u);
  for (std::uint32_t step = 1; step < 30; ++step) {
    store.Arrange(Parts({{1, 2}, {3}}, {10 + step, 20 + step}));
    EXPECT_EQ(store.copied, 0u) << step;
  }
}

TEST(PaddedLayout, APartWhoseRowsStayIsNotMovedWhenAnotherChanges) {
  Store store(1000);
  store.Arrange(Parts({{1, 2}, {3}}, {10, 20}));
  store.Arrange(Parts({{1, 2}, {3, 4}}, {10, 20}));
  EXPECT_EQ(store.copied, 19u) << "row 3 alone: row 4 comes from blocks";
}

TEST(PaddedLayout, AFullStoreGivesAllPartsNewPlaces) {
  Store store(60);
  store.Arrange(Parts({{1, 2}, {3}}, {10, 20}));
  store.Arrange(Parts({{3}, {1, 2}}, {20, 20}));
  EXPECT_EQ(store.allocated, 60u);
  for (const std::uint32_t slot : {1, 2}) EXPECT_TRUE(store.Holds(SlotId(slot), 9));
  EXPECT_TRUE(store.Holds(SlotId(3), 19));
}

TEST(PaddedLayout, RefusesPartsThatDoNotFitAndChangesNothing) {
  CellLayout layout(60, 0, 1);
  const auto refused = layout.Arrange(Parts({{1, 2}, {3}}, {20, 21}));
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  EXPECT_TRUE(layout.parts().empty());
}

TEST(PaddedLayout, MemoryIsAQuarterBlocksAndTheRestCellsWithTheirScratch) {
  const PagedLayout layout{UniformCaches(2, 2, 8), 16, DType::kFloat32};
  const RowLimits dense{RowStore::kDense, 64};
  const PoolSplit split = SplitPool(layout, dense, std::uint64_t{1} << 20, 128);
  EXPECT_EQ(split.blocks, (1u << 18) / layout.BytesPerBlock());
  EXPECT_EQ(CellBytes(layout, dense, 1), 2 * 2 * 2 * 8 * 4 + 2 * 8 * 4)
      << "K and V of two layers, and one K";
  EXPECT_LE(layout.Bytes(split.blocks) + CellBytes(layout, dense, split.cells), 1u << 20);
  EXPECT_GT(split.cells, 2000u);
  const PoolSplit small = SplitPool(layout, dense, layout.Bytes(10), 128);
  EXPECT_EQ(small.blocks, 5u) << "the longest sequence would be eight, at most half";
}

TEST(PaddedLayout, RowsInWholeBlocksTakeABlockMoreEachAndNoScratch) {
  const PagedLayout layout{UniformCaches(2, 2, 8), 16, DType::kFloat32};
  const RowLimits rows{RowStore::kBlocks, 20};
  const PoolSplit split = SplitPool(layout, rows, std::uint64_t{1} << 20, 128);
  const std::uint64_t left = (std::uint64_t{1} << 20) - layout.Bytes(split.blocks);
  EXPECT_EQ(split.cells, layout.BlocksIn(left) * 16 - 20 * 15);
  EXPECT_LE(CellBytes(layout, rows, split.cells), left);
  EXPECT_GT(CellBytes(layout, rows, split.cells + 16), left) << "no block is wasted";
  for (const std::uint64_t blocks : {0u, 1u, 7u, 20u, 21u, 500u}) {
    EXPECT_EQ(BlocksOfCells(CellsOfBlocks(blocks, 20, 16), 20, 16), blocks);
  }
}

}  // namespace
}  // namespace penstock::shard
