#include "scheduler/step/batch_splitter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace penstock::scheduler {
namespace {

using Parts = std::vector<std::vector<std::uint32_t>>;

std::vector<SplitRow> Rows(const std::vector<std::uint64_t>& lengths) {
  std::vector<SplitRow> rows;
  for (const std::uint64_t length : lengths) rows.push_back({length, 1});
  return rows;
}

SplitRule Sparsity(std::uint32_t ppm, std::uint32_t max_splits) {
  SplitRule rule;
  rule.objective = SplitObjective::kSparsity;
  rule.max_sparsity_ppm = ppm;
  rule.max_splits = max_splits;
  return rule;
}

Parts PartsOf(const BatchPartition& partition) {
  Parts parts;
  for (std::size_t p = 0; p < partition.ends.size(); ++p) {
    parts.emplace_back(partition.Part(p).begin(), partition.Part(p).end());
  }
  return parts;
}

Parts SplitInto(const std::vector<std::uint64_t>& lengths, const SplitRule& rule) {
  BatchSplitter splitter;
  return PartsOf(splitter.Split(Rows(lengths), rule));
}

TEST(BatchSplitter, TheDocumentedDemo) {
  const std::vector<std::uint64_t> lengths = {38, 33, 24, 22};
  EXPECT_EQ(SplitInto(lengths, Sparsity(10'000, 4)), (Parts{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(SplitInto(lengths, Sparsity(25'000, 4)), (Parts{{0}, {1}, {2, 3}}));
  EXPECT_EQ(SplitInto(lengths, Sparsity(100'000, 4)), (Parts{{0, 1}, {2, 3}}));
  EXPECT_EQ(SplitInto(lengths, Sparsity(900'000, 4)), (Parts{{0, 1, 2, 3}}));
  // The number of parts is a hard limit; sparsity is a target that may be missed.
  EXPECT_EQ(SplitInto(lengths, Sparsity(10'000, 3)), (Parts{{0}, {1}, {2, 3}}));
}

TEST(BatchSplitter, TwoLengthsAtTheDefault) {
  BatchSplitter splitter;
  const BatchPartition one = splitter.Split(Rows({300, 50}), Sparsity(330'000, 1));
  EXPECT_EQ(one.padding, 250u);
  EXPECT_EQ(one.tokens, 350u);
  const BatchPartition two = splitter.Split(Rows({300, 50}), Sparsity(330'000, 3));
  EXPECT_EQ(two.ends.size(), 2u);
  EXPECT_EQ(two.padding, 0u);
}

TEST(BatchSplitter, TenLengthsByParts) {
  const auto rows = Rows({27, 26, 18, 16, 14, 13, 12, 8, 7, 1});
  BatchSplitter splitter;
  const std::uint64_t paddings[] = {128, 50, 26, 14};
  for (std::uint32_t k = 1; k <= 4; ++k) {
    EXPECT_EQ(splitter.Split(rows, Sparsity(0, k)).padding, paddings[k - 1]) << k;
  }
  EXPECT_EQ(PartsOf(splitter.Split(rows, Sparsity(0, 3))),
            (Parts{{0, 1}, {2, 3, 4, 5, 6}, {7, 8, 9}}));
}

// More rows may need fewer parts.
TEST(BatchSplitter, PartsMayFallWithMoreRowsAndRiseWithFewer) {
  EXPECT_EQ(SplitInto({300, 50}, Sparsity(330'000, 3)).size(), 2u);
  EXPECT_EQ(SplitInto({300, 300, 300, 50}, Sparsity(330'000, 3)).size(), 1u);
}

TEST(BatchSplitter, SparsityAtTheBoundIsAllowed) {
  EXPECT_TRUE(WithinSparsity(33, 67, 330'000));
  EXPECT_FALSE(WithinSparsity(33, 66, 330'000));
  EXPECT_EQ(SplitInto({100, 34}, Sparsity(330'000, 3)).size(), 1u);
  EXPECT_EQ(SplitInto({100, 33}, Sparsity(330'000, 3)).size(), 2u);
}

TEST(BatchSplitter, WithoutRowsThereAreNoParts) {
  BatchSplitter splitter;
  EXPECT_TRUE(splitter.Split({}, SplitRule{}).ends.empty());
}

TEST(BatchSplitter, CostWeighsCellsAgainstLaunches) {
  SplitRule rule;
  rule.cell_cost = 3;
  rule.part_cost = 750;  // what 250 cells cost
  EXPECT_EQ(SplitInto({300, 50}, rule).size(), 1u);
  EXPECT_EQ(SplitInto({301, 50}, rule).size(), 2u);
  rule.max_splits = 1;
  EXPECT_EQ(SplitInto({301, 50}, rule).size(), 1u);
}

// The smallest padding of all set partitions into exactly k parts, for every k.
class BruteForce {
 public:
  explicit BruteForce(std::vector<SplitRow> rows) : rows_(std::move(rows)) {
    // Descending: the first row of a part is its longest.
    std::sort(rows_.begin(), rows_.end(),
              [](const SplitRow& a, const SplitRow& b) { return a.length > b.length; });
    least_.assign(rows_.size() + 1, std::numeric_limits<std::uint64_t>::max());
    Place(0, 0, 0);
  }
  std::uint64_t Padding(std::size_t parts) const { return least_[parts]; }

 private:
  void Place(std::size_t row, std::size_t parts, std::uint64_t padding) {
    if (row == rows_.size()) {
      least_[parts] = std::min(least_[parts], padding);
      return;
    }
    const SplitRow& placed = rows_[row];
    for (std::size_t p = 0; p < parts; ++p) {
      Place(row + 1, parts, padding + (longest_[p] - placed.length) * placed.weight);
    }
    longest_[parts] = placed.length;
    Place(row + 1, parts + 1, padding);
  }

  std::vector<SplitRow> rows_;
  std::vector<std::uint64_t> least_;
  std::uint64_t longest_[9] = {};
};

std::size_t BestParts(const BruteForce& brute, std::uint64_t tokens, std::size_t rows,
                      const SplitRule& rule) {
  const std::size_t most = std::min<std::size_t>(rows, rule.max_splits);
  if (rule.objective == SplitObjective::kSparsity) {
    for (std::size_t k = 1; k < most; ++k) {
      const std::uint64_t padding = brute.Padding(k);
      if (padding * 1'000'000 <= rule.max_sparsity_ppm * (padding + tokens)) return k;
    }
    return most;
  }
  const auto cost = [&](std::size_t k) {
    return (tokens + brute.Padding(k)) * rule.cell_cost + k * rule.part_cost;
  };
  std::size_t best = 1;
  for (std::size_t k = 2; k <= most; ++k) {
    if (cost(k) < cost(best)) best = k;
  }
  return best;
}

std::uint64_t PaddingOf(const BatchPartition& partition, const std::vector<SplitRow>& rows) {
  std::uint64_t padding = 0;
  for (std::size_t p = 0; p < partition.ends.size(); ++p) {
    std::uint64_t longest = 0;
    for (const std::uint32_t i : partition.Part(p)) longest = std::max(longest, rows[i].length);
    for (const std::uint32_t i : partition.Part(p)) {
      padding += (longest - rows[i].length) * rows[i].weight;
    }
  }
  return padding;
}

TEST(BatchSplitter, EqualsBruteForce) {
  constexpr std::uint32_t kSeed = 20231122;
  std::mt19937 random(kSeed);
  const auto upto = [&random](std::uint32_t least, std::uint32_t most) {
    return least + static_cast<std::uint32_t>(random() % (most - least + 1));
  };
  BatchSplitter splitter;
  for (int run = 0; run < 100'000; ++run) {
    std::vector<SplitRow> rows(upto(1, 8));
    const std::uint32_t longest = upto(1, 4) == 1 ? 4 : 500;  // short ones meet often
    std::uint64_t tokens = 0;
    for (SplitRow& row : rows) {
      row = {upto(1, longest), upto(1, 4) == 1 ? upto(1, 8) : 1};
      tokens += row.length * row.weight;
    }
    SplitRule rule;
    rule.objective = run % 2 == 0 ? SplitObjective::kSparsity : SplitObjective::kCost;
    rule.max_splits = upto(1, 9);
    rule.max_sparsity_ppm = upto(0, 600'000);
    rule.cell_cost = upto(1, 20);
    rule.part_cost = upto(0, 5000);

    const BruteForce brute(rows);
    const BatchPartition& found = splitter.Split(rows, rule);
    const std::size_t parts = BestParts(brute, tokens, rows.size(), rule);
    ASSERT_EQ(found.ends.size(), parts) << "seed " << kSeed << ", run " << run;
    ASSERT_EQ(found.padding, brute.Padding(parts)) << "seed " << kSeed << ", run " << run;
    ASSERT_EQ(found.padding, PaddingOf(found, rows)) << "seed " << kSeed << ", run " << run;
    ASSERT_EQ(found.tokens, tokens);
    std::vector<std::uint32_t> order = found.order;
    std::sort(order.begin(), order.end());
    for (std::uint32_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i);
    std::uint32_t before = 0;
    for (const std::uint32_t end : found.ends) {
      ASSERT_GT(end, before) << "an empty part; seed " << kSeed << ", run " << run;
      before = end;
    }
    ASSERT_EQ(before, rows.size());
  }
}

}  // namespace
}  // namespace penstock::scheduler
