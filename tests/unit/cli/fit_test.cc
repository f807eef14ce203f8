#include "cli/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kMiB = 1 << 20;

MemoryNeeds Needs() {
  MemoryNeeds needs;
  needs.model_type = "llama";
  needs.dtype = "bfloat16";
  needs.max_position = 4096;
  needs.weights = 900 * kMiB;
  needs.scratch = 100 * kMiB;
  needs.kv_per_token = 64 << 10;
  needs.free = 2000 * kMiB;
  return needs;
}

TEST(FitTest, SaysHowManyTokensAndRequestsFit) {
  // 1000 MiB are left; nine tenths of them are the cache.
  const std::string text = FitText("m", Needs());
  EXPECT_THAT(text, HasSubstr("m: llama, bfloat16\n"));
  EXPECT_THAT(text, HasSubstr("With --kv-cache-memory 900MiB:\n"));
  EXPECT_THAT(text, HasSubstr("  tokens                14400\n"));
  EXPECT_THAT(text, HasSubstr("  requests of 1024      14\n"));
  EXPECT_THAT(text, HasSubstr("  requests of 4096      3\n"));
  EXPECT_THAT(text, Not(HasSubstr("8192")));
}

TEST(FitTest, SaysWhatIsMissing) {
  MemoryNeeds needs = Needs();
  needs.free = 600 * kMiB;
  EXPECT_FALSE(needs.Fits());
  EXPECT_THAT(FitText("m", needs), HasSubstr("It does not fit: 400.0 MiB are missing"));
}

TEST(MemoryPlanTest, CountsAllRanks) {
  const auto needs = ParseMemoryPlan(
      R"({"model_type":"gemma3","weights":10,"scratch":2,"kv_per_token":3,"window":64,)"
      R"("window_kv_per_sequence":5,"state_per_sequence":0,"free":100,"limit":"x","problem":""})",
      2);
  ASSERT_TRUE(needs.ok());
  EXPECT_EQ(needs->Fixed(), 24u);
  EXPECT_EQ(needs->RequestBytes(10), 70u);
  EXPECT_EQ(needs->Left(), 76u);
  EXPECT_TRUE(needs->Fits());
  EXPECT_FALSE(ParseMemoryPlan("no model here", 1).ok());
}

}  // namespace
}  // namespace penstock::cli
