#include "router/api/tenant_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace penstock::router {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

class Gate : public ::testing::Test {
 protected:
  // Takes generations for the tenant, and keeps them. Returns the error.
  std::optional<ApiError> Take(const std::string& tenant, const TenantLimits& limits,
                               std::uint32_t count = 1) {
    Permit permit = *permits_.Take(count);
    auto error = gate_.Enter(tenant, limits, count, now_, permit);
    if (!error) held_.push_back(std::move(permit));
    return error;
  }

  Permits permits_{1000};
  TenantGate gate_{100};
  std::vector<Permit> held_;
  Time now_{seconds(1000)};
};

TEST_F(Gate, BoundsGenerationsAtOnce) {
  const TenantLimits limits{.max_requests = 3};
  EXPECT_FALSE(Take("a", limits, 2));
  const auto error = Take("a", limits, 2);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, ApiErrorKind::kOverloaded);
  EXPECT_EQ(error->message,
            "the API key `a` may have at most 3 generations at once (`max_requests`). With this "
            "request it has 4");
  EXPECT_FALSE(Take("a", limits));
  EXPECT_FALSE(Take("b", limits, 3)) << "each tenant has its own";
  held_.clear();
  EXPECT_FALSE(Take("a", limits, 3)) << "an answer returns its generations";
}

TEST_F(Gate, BoundsTheShareOfTheQueue) {
  const TenantLimits limits{.queue_share = 0.25};
  EXPECT_FALSE(Take("a", limits, 25));
  EXPECT_EQ(Take("a", limits)->message,
            "the API key `a` may have at most 25 generations at once: its `queue_share` is 0.25 of "
            "--max-concurrent-requests 100. With this request it has 26");
  EXPECT_FALSE(Take("small", TenantLimits{.queue_share = 0.001})) << "one at least";
}

TEST_F(Gate, TokensFillUpEvenly) {
  const TenantLimits limits{.tokens_per_minute = 600};
  EXPECT_FALSE(Take("a", limits));
  gate_.Spend("a", 590, now_);
  EXPECT_FALSE(Take("a", limits)) << "10 are left";
  gate_.Spend("a", 29, now_);
  const auto error = Take("a", limits);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("at most 600 tokens a minute (`tokens_per_minute`)"));
  EXPECT_EQ(error->retry_after, 2) << "20 tokens, at 10 a second";
  now_ += seconds(1);
  EXPECT_TRUE(Take("a", limits));
  now_ += seconds(1);
  EXPECT_FALSE(Take("a", limits));
  now_ += seconds(3600);
  Take("a", limits);
  gate_.Spend("a", 600, now_);
  EXPECT_TRUE(Take("a", limits)) << "a bucket holds one minute";
}

TEST_F(Gate, ANewLimitBeginsWithAFullBucket) {
  EXPECT_FALSE(Take("a", {.tokens_per_minute = 10}));
  gate_.Spend("a", 1000, now_);
  EXPECT_TRUE(Take("a", {.tokens_per_minute = 10}));
  EXPECT_FALSE(Take("a", {.tokens_per_minute = 20}));
  gate_.Spend("unknown", 5, now_);
}

TEST_F(Gate, ATenantWaitsForItsOwnRequestsOnly) {
  const TenantLimits heavy{.weight = 3};
  const TenantLimits light{.weight = 1};
  ASSERT_FALSE(Take("heavy", heavy, 90));
  ASSERT_FALSE(Take("light", light, 1));
  const auto of_heavy = gate_.WaitsOf("heavy", heavy, 1, 16);
  EXPECT_EQ(of_heavy.part, 12);
  EXPECT_EQ(of_heavy.waiting, 79);
  const auto of_light = gate_.WaitsOf("light", light, 1, 16);
  EXPECT_EQ(of_light.part, 4);
  EXPECT_EQ(of_light.waiting, 0);
}

}  // namespace
}  // namespace penstock::router
