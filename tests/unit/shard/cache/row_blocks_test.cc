// Padded KV rows in whole blocks: every partition within the limits has room, and contents stay
// where they are, whatever sub-batch a row is in.
#include "shard/cache/padded/row_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace penstock::shard {
namespace {

using testing::ElementsAreArray;
using testing::IsEmpty;

constexpr std::uint32_t kBlockSize = 4;
constexpr std::uint32_t kFirst = 100;  // block of rows

std::vector<BlockId> Blocks(std::uint32_t first, std::uint32_t count) {
  std::vector<BlockId> blocks;
  for (std::uint32_t i = 0; i < count; ++i) blocks.emplace_back(first + i);
  return blocks;
}

std::vector<BlockId> TableOf(const RowBlocks& rows, std::uint32_t slot) {
  const auto table = rows.Table(SlotId(slot));
  return {table.begin(), table.end()};
}

TEST(RowBlocks, ARowThatJoinsIsCopiedAndKeepsItsBlocksInEverySubBatch) {
  RowBlocks rows(100, 4, BlockId(kFirst), kBlockSize);
  const std::vector<BlockId> prompt = Blocks(7, 2);
  ASSERT_TRUE(rows.Arrange(std::vector<CellPart>{{{{SlotId(1), 6, prompt}}, 7}}).ok());
  ASSERT_EQ(rows.copies().size(), 2u);
  const std::vector<BlockId> table = TableOf(rows, 1);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rows.copies()[i].from, prompt[i]);
    EXPECT_EQ(rows.copies()[i].to, table[i]);
  }
  const std::vector<BlockId> other = Blocks(20, 4);
  const auto joined =
      rows.Arrange(std::vector<CellPart>{{{{SlotId(2), 15, other}, {SlotId(1), 7, {}}}, 16}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->allocated, 32u);
  EXPECT_EQ(joined->copied, 15u) << "row 1 is not copied again";
  EXPECT_EQ(TableOf(rows, 1).size(), 4u) << "padded to the width";
  EXPECT_THAT(rows.Table(SlotId(1)).first(2), ElementsAreArray(table));
  const auto divided =
      rows.Arrange(std::vector<CellPart>{{{{SlotId(2), 16, {}}}, 17}, {{{SlotId(1), 8, {}}}, 9}});
  ASSERT_TRUE(divided.ok()) << divided.status();
  EXPECT_EQ(divided->allocated, 26u);
  EXPECT_EQ(divided->copied, 0u);
  EXPECT_EQ(TableOf(rows, 1).size(), 3u) << "the padding is given back";
  EXPECT_THAT(rows.Table(SlotId(1)).first(2), ElementsAreArray(table));
}

TEST(RowBlocks, ARowThatNoPartNamesIsDroppedAndItsSlotCanJoinAgain) {
  RowBlocks rows(8, 2, BlockId(kFirst), kBlockSize);
  const std::vector<BlockId> prompt = Blocks(0, 2);
  ASSERT_TRUE(rows.Arrange(std::vector<CellPart>{{{{SlotId(3), 7, prompt}}, 8}}).ok());
  ASSERT_TRUE(rows.Arrange({}).ok());
  EXPECT_THAT(rows.Table(SlotId(3)), IsEmpty());
  for (int i = 0; i < 3; ++i) {  // each time another sequence
    const auto arranged = rows.Arrange(std::vector<CellPart>{{{{SlotId(3), 7, prompt}}, 8}});
    ASSERT_TRUE(arranged.ok()) << arranged.status();
    EXPECT_EQ(arranged->copied, 7u);
    EXPECT_EQ(rows.Table(SlotId(3)).size(), 2u);
  }
}

TEST(RowBlocks, RefusesWhatBreaksALimitAndChangesNothing) {
  RowBlocks rows(20, 2, BlockId(kFirst), kBlockSize);
  const std::vector<BlockId> prompt = Blocks(98, 3);  // the last is a block of rows
  const auto one = [&prompt](std::uint32_t slot, std::uint32_t length) {
    return CellRow{SlotId(slot), length, prompt};
  };
  ASSERT_TRUE(rows.Arrange(std::vector<CellPart>{{{one(1, 5)}, 8}}).ok());
  const std::vector<BlockId> before = TableOf(rows, 1);
  const std::vector<std::pair<const char*, CellPart>> wrong = {
      {"cells", {{one(1, 5), one(2, 5)}, 11}},
      {"rows of cells", {{one(1, 5), one(2, 5), one(3, 5)}, 6}},
      {"row length", {{one(1, 9)}, 8}},
      {"row.blocks", {{one(1, 9)}, 10}},
      {"row.blocks", {{one(1, 14)}, 15}},
  };
  for (const auto& [field, part] : wrong) {
    const auto refused = rows.Arrange({&part, 1});
    EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << field;
    EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr(field));
    EXPECT_THAT(TableOf(rows, 1), ElementsAreArray(before));
  }
}

// Sequences that join, grow and leave, in a new random partition for each step.
class AnyPartition : public testing::TestWithParam<std::uint32_t> {
 protected:
  std::uint32_t Draw(std::uint32_t below) { return random_() % below; }

  // The partition has at most the cells of the store.
  std::vector<CellPart> Parts() {
    std::vector<CellPart> parts(1 + Draw(4));
    for (const auto& [slot, length] : lengths_) {
      CellPart& part = parts[Draw(static_cast<std::uint32_t>(parts.size()))];
      part.rows.push_back({SlotId(slot), length, {}});
      if (!known_.contains(slot)) part.rows.back().blocks = prompt_;
      part.width = std::max(part.width, length + 1);
    }
    std::erase_if(parts, [](const CellPart& part) { return part.rows.empty(); });
    return parts;
  }

  static std::uint64_t CellsOf(const std::vector<CellPart>& parts) {
    std::uint64_t cells = 0;
    for (const CellPart& part : parts) cells += part.rows.size() * part.width;
    return cells;
  }

  void Change() {
    for (auto& [slot, length] : lengths_) ++length;
    std::erase_if(lengths_, [this](const auto&) { return Draw(20) == 0; });
    const std::uint32_t slot = Draw(kRows);
    if (!lengths_.contains(slot) && !known_.contains(slot)) lengths_[slot] = 1 + Draw(kLongest / 2);
  }

  void ExpectOwnBlocks(const RowBlocks& rows, const std::vector<CellPart>& parts,
                       std::uint64_t blocks) {
    std::set<BlockId> all;
    for (const CellPart& part : parts) {
      for (const CellRow& row : part.rows) {
        const auto table = rows.Table(row.slot);
        ASSERT_EQ(table.size(), (part.width + kBlockSize - 1) / kBlockSize);
        for (const BlockId block : table) {
          EXPECT_TRUE(all.insert(block).second) << "a block of two rows";
          EXPECT_GE(block.value(), kFirst);
          EXPECT_LT(block.value(), kFirst + blocks);
        }
      }
    }
  }

  static constexpr std::uint32_t kRows = 12;
  static constexpr std::uint32_t kLongest = 60;
  std::mt19937 random_{GetParam()};
  const std::vector<BlockId> prompt_ = Blocks(0, kLongest);
  std::map<std::uint32_t, std::uint32_t> lengths_;  // by slot
  std::set<std::uint32_t> known_;                   // slots of the last step
};

TEST_P(AnyPartition, HasRoom) {
  const std::uint32_t cells = 60 + Draw(400);
  RowBlocks rows(cells, kRows, BlockId(kFirst), kBlockSize);
  std::map<std::uint32_t, std::vector<BlockId>> before;
  for (int step = 0; step < 300; ++step) {
    Change();
    std::vector<CellPart> parts = Parts();
    while (CellsOf(parts) > cells) {  // admission would not have let so many in
      lengths_.erase(lengths_.begin());
      parts = Parts();
    }
    const auto arranged = rows.Arrange(parts);
    ASSERT_TRUE(arranged.ok()) << arranged.status();
    EXPECT_EQ(arranged->allocated, CellsOf(parts));
    ExpectOwnBlocks(rows, parts, BlocksOfCells(cells, kRows, kBlockSize));
    for (const auto& [slot, length] : lengths_) {
      const std::vector<BlockId> table = TableOf(rows, slot);
      const std::size_t held = (length + kBlockSize - 1) / kBlockSize;
      if (known_.contains(slot)) {
        const std::size_t same = std::min(held, before[slot].size());
        EXPECT_TRUE(std::equal(table.begin(), table.begin() + same, before[slot].begin()))
            << "contents must not move";
      }
      before[slot] = table;
    }
    known_.clear();
    for (const auto& [slot, length] : lengths_) known_.insert(slot);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, AnyPartition, testing::Range(1u, 41u));

}  // namespace
}  // namespace penstock::shard
