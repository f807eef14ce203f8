#include "router/api/retry_advice.h"

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(RetryAdvice, IsTheTimeInWhichTheQueueIsAdmitted) {
  RetryAdvice advice;
  EXPECT_EQ(advice.Seconds(100, 10), 1);  // nothing is known yet
  advice.Computed(seconds(2));
  EXPECT_EQ(advice.Seconds(0, 10), 1);
  EXPECT_EQ(advice.Seconds(100, 10), 20);
  EXPECT_EQ(advice.Seconds(101, 10), 21);
  EXPECT_EQ(advice.Seconds(7, 0), 14);
}

TEST(RetryAdvice, IsAtLeastOneAndAtMostSixtySeconds) {
  RetryAdvice advice;
  advice.Computed(milliseconds(1));
  EXPECT_EQ(advice.Seconds(1, 10), 1);
  advice.Computed(seconds(1000));
  EXPECT_EQ(advice.Seconds(1000, 1), 60);
}

TEST(RetryAdvice, FollowsTheRecentPace) {
  RetryAdvice advice;
  advice.Computed(seconds(100));
  for (int i = 0; i < 200; ++i) advice.Computed(seconds(2));
  EXPECT_LE(advice.Seconds(10, 10), 3);
}

using RetryAfterTest = ApiTest;

// The queue has 40 requests, of which 8 are computed at once in 3 s.
TEST_F(RetryAfterTest, IsThatOfTheQueueInEveryDialect) {
  api_.max_concurrent_requests = 2;
  AnswerWith({"a"}, FinishReason::kLength);
  const auto script = engine_.script;
  engine_.script = [script](const GenerationRequest& request) {
    auto events = script(request);
    std::get<GenerationEnd>(events.back()).timings.inference = seconds(3);
    return events;
  };
  ASSERT_EQ(Post("/generate", R"({"inputs":"a"})").status, 200);
  metrics_.scheduler().SetQueue(40, 8);
  FailWith({ErrorKind::kOverloaded, "full", "", {}});
  const std::pair<std::string_view, std::string_view> requests[] = {
      {"/generate", R"({"inputs":"a"})"},
      {"/v1/completions", R"({"prompt":"a"})"},
      {"/predictions/demo", R"({"inputs":"a"})"},
      {"/predictions/demo", R"({"inputs":["a","b"]})"},
      {"/v1/completions", R"({"prompt":["a","b","c"]})"},  // more than there are permits
  };
  for (const auto& [path, body] : requests) {
    const auto response = Post(path, body);
    EXPECT_TRUE(response.status == 429 || response.status == 503) << path << response.body;
    EXPECT_EQ(response.headers.at("retry-after"), "15") << path;
    EXPECT_EQ(response.headers.at("retry-after-ms"), "15000") << path;
  }
}

}  // namespace
}  // namespace penstock::router
