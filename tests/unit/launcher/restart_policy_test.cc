#include "launcher/restart_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

namespace penstock::launcher {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

TEST(RestartPolicyTest, PausesDoubleUntilTheLimitAndTheWindowForgets) {
  RestartPolicy policy({.first_pause = seconds(1),
                        .longest_pause = seconds(3),
                        .restarts = 4,
                        .window = seconds(100)});
  const RestartPolicy::Time begin{};
  std::vector<std::optional<std::chrono::nanoseconds>> pauses;
  for (int i = 0; i < 5; ++i) pauses.push_back(policy.OnFailure(begin + seconds(i)));
  EXPECT_THAT(pauses, ElementsAre(seconds(1), seconds(2), seconds(3), seconds(3), std::nullopt));
  EXPECT_EQ(policy.OnFailure(begin + seconds(1000)), seconds(1));
}

}  // namespace
}  // namespace penstock::launcher
