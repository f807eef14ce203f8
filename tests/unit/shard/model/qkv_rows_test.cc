// Which stored rows become the queries, keys and values of a rank.
#include "shard/model/qkv_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace penstock::shard {
namespace {

using testing::ElementsAre;

std::vector<std::uint64_t> RowsOf(const std::vector<RowSlice>& slices) {
  std::vector<std::uint64_t> rows;
  for (const RowSlice& slice : slices) {
    for (std::uint64_t i = 0; i < slice.rows.count; ++i) {
      rows.push_back(slice.rows.first + i * slice.step);
    }
  }
  return rows;
}

// Rank 1 of 2.
QkvRows SecondRank(std::uint32_t query_heads, std::uint32_t kv_heads, std::uint32_t dim) {
  return {{query_heads, kv_heads, dim, dim},
          {query_heads / 2, kv_heads / 2, dim, dim},
          query_heads / 2,
          kv_heads / 2,
          0};
}

TEST(QkvRows, OfGroupsAreQueriesThenKeyThenValue) {
  // Four query heads of two rows, two K/V heads: q0 q1 k0 v0 q2 q3 k1 v1.
  const std::vector<RowSlice> slices = SecondRank(4, 2, 2).ByHead("qkv");
  EXPECT_THAT(RowsOf(slices), ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_EQ(slices.size(), 3u) << "heads of one kind that follow each other are one slice";
  EXPECT_EQ(slices.front().stored_rows, 16u);
}

TEST(QkvRows, OfASharedKeyAreTheSameOnEachRank) {
  // q0 q1 q2 q3 k v, and two query heads on this rank.
  const QkvRows rows({4, 1, 2, 2}, {2, 1, 2, 2}, 2, 0, 0);
  EXPECT_THAT(RowsOf(rows.ByHead("qkv")), ElementsAre(4, 5, 6, 7, 8, 9, 10, 11));
  EXPECT_THAT(RowsOf(rows.Fused("qkv")), RowsOf(rows.ByHead("qkv")));
}

TEST(QkvRows, OfBlocksHaveTheValuesBeforeTheKeys) {
  // Two blocks of one head: q0 v0 k0 q1 v1 k1, two rows each.
  EXPECT_THAT(RowsOf(SecondRank(2, 2, 2).ByBlock("qkv", 2)), ElementsAre(6, 7, 10, 11, 8, 9));
}

TEST(QkvRows, OfInterleavedHeadsBeginWithTheFirstRowsOfAllPairs) {
  // A head of six rows, of which the first four are pairs of neighbours. Values are not rotated.
  const QkvRows rows({1, 1, 6, 6}, {1, 1, 6, 6}, 0, 0, 4);
  EXPECT_THAT(RowsOf(rows.Separate("q", "k", "v")),
              ElementsAre(0, 2, 1, 3, 4, 5, 0, 2, 1, 3, 4, 5, 0, 1, 2, 3, 4, 5));
}

TEST(QkvRows, BesideGatesSkipThem) {
  const QkvRows rows = SecondRank(2, 2, 2);
  EXPECT_THAT(RowsOf(rows.BesideGates("q", "k", "v")), ElementsAre(4, 5, 2, 3, 2, 3));
  EXPECT_THAT(RowsOf(rows.Gates("q")), ElementsAre(6, 7));
}

}  // namespace
}  // namespace penstock::shard
