// effective-batching's routes: exact lengths, its four figures and formulas, a reset.
#include <boost/json/object.hpp>
#include <string>

#include "router/api/effective/latency_histogram.h"
#include "router/api/effective/stats_book.h"
#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

class EffectiveTest : public ApiTest {
 protected:
  boost::json::object Stats() { return boost::json::parse(Get("/stats").body).as_object(); }
};

TEST_F(EffectiveTest, CompletionIsThePromptAndWhatFollows) {
  AnswerWith({" a", " b", " c"}, FinishReason::kLength);
  const auto response = Post("/inference", R"({"prompt":"hi","num_tokens":3})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, R"({"completion":"hi a b c"})");
}

TEST_F(EffectiveTest, AsksForExactlyNumTokensPastTheEndToken) {
  AnswerWith({" a", " b"}, FinishReason::kLength);
  Post("/inference", R"({"prompt":"hi","num_tokens":2,"seed":9})");
  const auto call = engine_.WaitForCall();
  ASSERT_TRUE(call.has_value());
  EXPECT_EQ(call->request.max_new_tokens, 2u);
  EXPECT_TRUE(call->request.exact_length);
  EXPECT_TRUE(call->request.ignore_eos);
  EXPECT_TRUE(call->request.sampling.do_sample);
  EXPECT_EQ(call->request.sampling.temperature, 1.0f);
  EXPECT_EQ(call->request.seed, 9u);
  EXPECT_EQ(call->request.predicted_tokens, 2u);
}

TEST_F(EffectiveTest, DetailsHaveTheTokenIds) {
  AnswerWith({" a", " b"}, FinishReason::kLength);
  const auto response =
      Post("/inference", R"({"prompt":"hi","num_tokens":2,"seed":9,"details":true})");
  const auto details = boost::json::parse(response.body).at("details");
  EXPECT_EQ(details.at("tokens"), boost::json::array({1, 2}));
  EXPECT_EQ(details.at("seed"), 9);
  EXPECT_EQ(details.at("prompt_tokens"), 5);
  EXPECT_EQ(details.at("request"), 1);
}

TEST_F(EffectiveTest, ErrorsNameFieldValueAndLimit) {
  EXPECT_THAT(Post("/inference", R"({"num_tokens":2})").body,
              HasSubstr(R"({"error":"`prompt` is missing")"));
  const auto zero = Post("/inference", R"({"prompt":"hi","num_tokens":0})");
  EXPECT_EQ(zero.status, 422);
  EXPECT_THAT(zero.body, HasSubstr("`num_tokens` must be at least 1. Given: 0"));
  EXPECT_EQ(Post("/inference", R"({"prompt":"hi","num_tokens":"2"})").status, 422);
  EXPECT_EQ(Post("/inference", R"({"prompt":)").status, 400);
  for (const char* body : {"[]", R"(["hi",2])", "null", "7"}) {
    const auto shape = Post("/inference", body);
    EXPECT_EQ(shape.status, 422) << body;
    EXPECT_THAT(shape.body, HasSubstr("must be an object with `prompt` and `num_tokens`")) << body;
  }
  FailWith({ErrorKind::kValidation, "", "max_new_tokens", LengthExceeded{5, 300, 256}});
  EXPECT_THAT(Post("/inference", R"({"prompt":"hi","num_tokens":300})").body,
              HasSubstr("`prompt` (5 tokens) plus `num_tokens` (300) must be at most 256"));
}

TEST_F(EffectiveTest, StatsAreServedBeforeTheFirstRequest) {
  const auto stats = Stats();
  for (const char* name : {"latency-per-token", "throughput", "total-elapsed-time"}) {
    EXPECT_EQ(stats.at(name).to_number<double>(), 0) << name;
  }
  EXPECT_EQ(stats.at("total-tokens-handled"), 0);
}

TEST_F(EffectiveTest, StatsCountAnsweredRequestsUntilTheReset) {
  dialects_.batching = "static";
  AnswerWith({" a", " b", " c"}, FinishReason::kLength);
  Post("/inference", R"({"prompt":"hi","num_tokens":3})");
  Post("/inference", R"({"prompt":"hi","num_tokens":3,"intended_arrival_ms":1000})");
  Post("/generate", R"({"inputs":"hi"})");  // another dialect's
  auto stats = Stats();
  EXPECT_EQ(stats.at("total-tokens-handled"), 6);
  EXPECT_EQ(stats.at("requests"), 2);
  EXPECT_EQ(stats.at("in-flight"), 0);
  EXPECT_EQ(stats.at("batching"), "static");
  EXPECT_EQ(stats.at("inter-token-latency-seconds").at("count"), 4);
  EXPECT_EQ(stats.at("latency-from-intended-arrival-seconds").at("count"), 1);
  // Since 1970: the client is very late.
  EXPECT_GT(stats.at("latency-from-intended-arrival-seconds").at("mean").to_number<double>(), 1e9);
  EXPECT_GT(stats.at("breakdown").at("3").to_number<double>(), 0);

  const auto reset = testing::RawClient::Fetch(
      port_, "DELETE /stats HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(reset.status, 200);
  stats = Stats();
  EXPECT_EQ(stats.at("total-tokens-handled"), 0);
  EXPECT_EQ(stats.at("requests"), 0);
  EXPECT_TRUE(stats.at("breakdown").as_object().empty());
}

TEST_F(EffectiveTest, FailedRequestsAreNotInTheFigures) {
  FailWith({ErrorKind::kGeneration, "the shards are gone", "", {}});
  Post("/inference", R"({"prompt":"hi","num_tokens":3})");
  const auto stats = Stats();
  EXPECT_EQ(stats.at("failed"), 1);
  EXPECT_EQ(stats.at("in-flight"), 0);
  EXPECT_EQ(stats.at("total-tokens-handled"), 0);
}

// --- The formulas

boost::json::object Read(const effective::StatsBook& book) {
  return boost::json::parse(book.ToJson("none")).as_object();
}

effective::FinishedRequest Finished(int from_s, int to_s, std::uint32_t tokens) {
  return {Time(seconds(from_s)), Time(seconds(to_s)), tokens, seconds(1), {}, {}};
}

TEST(StatsBook, FollowsTheOriginalsFormulas) {
  effective::StatsBook book;
  const auto era = book.Begin(Time(seconds(10)));
  book.Begin(Time(seconds(10)));
  book.End(era, Finished(10, 12, 4));   // 2 s, 0.5 s a token
  book.End(era, Finished(10, 20, 10));  // 10 s, 1 s a token
  const auto stats = Read(book);
  EXPECT_DOUBLE_EQ(stats.at("latency-per-token").as_double(), 0.75);
  EXPECT_DOUBLE_EQ(stats.at("throughput").as_double(), 14.0 / 12.0);
  EXPECT_EQ(stats.at("total-tokens-handled"), 14);
  EXPECT_DOUBLE_EQ(stats.at("total-elapsed-time").as_double(), 12);
  // The figures above do not show that both requests ran in the same ten seconds.
  EXPECT_DOUBLE_EQ(stats.at("tokens-per-second").as_double(), 1.4);
  EXPECT_DOUBLE_EQ(stats.at("wall-clock-seconds").as_double(), 10);
}

TEST(StatsBook, ARequestFromBeforeTheResetDoesNotCount) {
  effective::StatsBook book;
  const auto era = book.Begin(Time(seconds(1)));
  book.Reset();
  EXPECT_EQ(Read(book).at("in-flight"), 1);
  book.End(era, Finished(1, 2, 4));
  const auto stats = Read(book);
  EXPECT_EQ(stats.at("in-flight"), 0);
  EXPECT_EQ(stats.at("requests"), 0);
}

TEST(StatsBook, KeepsABoundedBreakdown) {
  effective::StatsBook book;
  for (std::uint32_t tokens = 1; tokens <= 10'000; ++tokens) {
    book.End(book.Begin(Time(seconds(1))), Finished(1, 2, tokens));
  }
  const auto stats = Read(book);
  EXPECT_EQ(stats.at("requests"), 10'000);
  EXPECT_EQ(stats.at("breakdown").as_object().size(), 4096u);
}

TEST(LatencyHistogram, PercentilesAreWithinTwoPercent) {
  effective::LatencyHistogram histogram;
  for (int i = 1; i <= 1000; ++i) histogram.Add(milliseconds(i));
  const Percentiles p = histogram.Seconds();
  EXPECT_NEAR(p.mean, 0.5005, 1e-9);
  EXPECT_NEAR(p.p50, 0.5, 0.5 * 0.02);
  EXPECT_NEAR(p.p90, 0.9, 0.9 * 0.02);
  EXPECT_NEAR(p.p99, 0.99, 0.99 * 0.02);
  EXPECT_DOUBLE_EQ(p.max, 1);
}

TEST(LatencyHistogram, TakesAnyDuration) {
  effective::LatencyHistogram histogram;
  histogram.Add(Duration{-1});
  histogram.Add(Duration{0});
  EXPECT_EQ(histogram.Seconds().p99, 0);
  histogram.Add(Duration::max());
  EXPECT_GT(histogram.Seconds().p99, 1e6);
}

}  // namespace
}  // namespace penstock::router
