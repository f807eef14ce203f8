#include "sim/model/decode_partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::sim {
namespace {

using ::testing::ElementsAre;

std::vector<PartitionRow> Rows(const std::vector<std::uint64_t>& lengths) {
  std::vector<PartitionRow> rows;
  for (const std::uint64_t length : lengths) rows.push_back({SequenceId(rows.size() + 1), length});
  return rows;
}

TEST(DecodePartitionTest, FewestPartsBelowTheSparsity) {
  scheduler::Config config;
  config.split = scheduler::SplitObjective::kSparsity;
  config.max_sparsity_ppm = 100'000;
  config.max_splits = 4;
  DecodePartition partition(config, 0);
  partition.Update(Rows({38, 33, 24, 22}), 0);
  EXPECT_THAT(partition.parts(), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  EXPECT_TRUE(partition.renewed());
  EXPECT_THAT(partition.moved(), ElementsAre(0, 1, 2, 3));
}

TEST(DecodePartitionTest, ALaunchMustPay) {
  DecodePartition dear(scheduler::Config{}, 0);
  dear.Update(Rows({20, 10}), 10);
  EXPECT_EQ(dear.parts().size(), 1u);
  DecodePartition cheap(scheduler::Config{}, 0);
  cheap.Update(Rows({20, 10}), 9);
  EXPECT_EQ(cheap.parts().size(), 2u);
}

TEST(DecodePartitionTest, LeastCellsEqualsTheBestCut) {
  EXPECT_EQ(LeastCells({10, 9, 2, 1}, 1), 40u);
  EXPECT_EQ(LeastCells({10, 9, 2, 1}, 2), 24u);
}

}  // namespace
}  // namespace penstock::sim
