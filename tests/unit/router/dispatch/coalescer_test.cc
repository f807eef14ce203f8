#include "router/dispatch/coalescer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace penstock::router {
namespace {

using std::chrono::milliseconds;

constexpr Duration kInterval = milliseconds(2);

class NoStrand final : public Strand {
 public:
  bool RunOnce() override { return false; }
};

Time At(int ms) { return Time(milliseconds(ms)); }

scheduler::Event Token(std::uint32_t index) {
  scheduler::Tokens tokens;
  tokens.first_index = index;
  tokens.tokens.push_back({});
  return {RequestId(1), std::move(tokens)};
}

scheduler::Event End() { return {RequestId(1), scheduler::Finished{}}; }

// After a release at 100 ms.
Coalescer AfterRelease() {
  Coalescer coalescer(kInterval);
  std::vector<std::shared_ptr<Strand>> due;
  coalescer.TakeDue(At(100), due);
  return coalescer;
}

TEST(Coalescer, OnlyTokensAfterTheFirstWaitAndOnlyWithinTheInterval) {
  const Coalescer coalescer = AfterRelease();
  EXPECT_TRUE(coalescer.Holds(std::vector{Token(1)}, At(101)));
  EXPECT_FALSE(coalescer.Holds(std::vector{Token(0)}, At(101))) << "the first token";
  EXPECT_FALSE(coalescer.Holds(std::vector{Token(5), End()}, At(101))) << "the end";
  EXPECT_FALSE(coalescer.Holds(std::vector{Token(1)}, At(102)))
      << "steps are longer than the interval";
}

TEST(Coalescer, NothingWaitsWithoutAnInterval) {
  Coalescer coalescer(Duration{0});
  std::vector<std::shared_ptr<Strand>> due;
  coalescer.TakeDue(At(100), due);
  EXPECT_FALSE(coalescer.Holds(std::vector{Token(1)}, At(100)));
}

TEST(Coalescer, AllStrandsAreReleasedTogether) {
  Coalescer coalescer = AfterRelease();
  const auto one = std::make_shared<NoStrand>();
  const auto other = std::make_shared<NoStrand>();
  EXPECT_EQ(coalescer.until(), std::nullopt);
  coalescer.Add(one);
  coalescer.Add(other);
  EXPECT_EQ(coalescer.until(), At(102));
  std::vector<std::shared_ptr<Strand>> due;
  coalescer.TakeDue(At(101), due);
  EXPECT_TRUE(due.empty());
  coalescer.TakeDue(At(102), due);
  EXPECT_EQ(due, (std::vector<std::shared_ptr<Strand>>{one, other}));
  EXPECT_EQ(coalescer.until(), std::nullopt);
}

TEST(Coalescer, AStrandCanBeRemoved) {
  Coalescer coalescer = AfterRelease();
  const std::shared_ptr<Strand> strand = std::make_shared<NoStrand>();
  coalescer.Add(strand);
  EXPECT_TRUE(coalescer.Remove(strand));
  EXPECT_FALSE(coalescer.Remove(strand));
}

}  // namespace
}  // namespace penstock::router
