// The checks at the entry of a request, in the error forms of several dialects.
#include "router/api/guard.h"

#include <chrono>

#include "router/api/metrics_page.h"
#include "router/api/tenant_file.h"
#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawClient;
using testing::RawResponse;

constexpr char kTenants[] = R"(tenants:
  alice: {key: alpha, weight: 3, max_requests: 1, max_priority: 5}
  bob: {key: beta, tokens_per_minute: 5}
)";
constexpr char kAlice[] = "Authorization: Bearer alpha\r\n";
constexpr char kBob[] = "Authorization: Bearer beta\r\n";
constexpr char kGenerate[] = R"({"inputs":"a","parameters":{"max_new_tokens":2}})";

class GuardTest : public ApiTest {
 protected:
  void UseTenants(const std::string& more = "") {
    api_.keys = std::make_shared<KeyRing>(ParseTenants("", kTenants + more, "file").value());
  }
  // Requests of 10 s each, `waiting` of them before a new one.
  void Queue(std::uint32_t waiting, std::uint32_t running) {
    AnswerWith({"a"}, FinishReason::kLength);
    const auto script = engine_.script;
    engine_.script = [script](const GenerationRequest& request) {
      auto events = script(request);
      std::get<GenerationEnd>(events.back()).timings.inference = std::chrono::seconds(10);
      return events;
    };
    EXPECT_EQ(Post("/generate", kGenerate, kAlice).status, 200);
    metrics_.scheduler().SetQueue(waiting, running);
  }
};

TEST_F(GuardTest, ATenantHasItsWeightAndAnAccount) {
  UseTenants();
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/generate", kGenerate, kAlice).status, 200);
  const auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  EXPECT_EQ(call->request.account, "alice");
  EXPECT_EQ(call->request.weight, 3u);
  EXPECT_FALSE(call->request.shares_prefixes);
}

TEST_F(GuardTest, KeysInLinesHaveNoAccounts) {
  api_.keys = std::make_shared<KeyRing>(ApiKeys::Parse("", "alice:alpha").value());
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/generate", kGenerate, kAlice).status, 200);
  EXPECT_EQ(engine_.WaitForCall()->request.account, "");
}

TEST_F(GuardTest, ATenantAboveItsLimitGets429InItsDialect) {
  UseTenants();
  Start();
  RawClient first(port_);
  first.Send(testing::Post("/generate", kGenerate, kAlice));
  ASSERT_TRUE(engine_.WaitForCall());
  const RawResponse tgi = Post("/generate", kGenerate, kAlice);
  EXPECT_EQ(tgi.status, 429);
  EXPECT_TRUE(tgi.headers.contains("retry-after"));
  EXPECT_THAT(tgi.body, AllOf(HasSubstr("\"error_type\":\"overloaded\""),
                              HasSubstr("at most 1 generation at once (`max_requests`)")));
  const RawResponse openai =
      Post("/v1/completions", R"({"model":"demo","prompt":"a","max_tokens":2})", kAlice);
  EXPECT_EQ(openai.status, 429);
  EXPECT_THAT(openai.body, HasSubstr("\"type\":\"rate_limit_error\""));
  const RawResponse anthropic =
      Post("/v1/messages",
           R"({"model":"demo","max_tokens":2,"messages":[{"role":"user","content":"a"}]})", kAlice);
  EXPECT_EQ(anthropic.status, 429);
  EXPECT_THAT(anthropic.body, HasSubstr("\"type\":\"rate_limit_error\""));
  EXPECT_THAT(metrics_.Render(), HasSubstr("penstock_tenant_refused_total{tenant=\"alice\"} 3\n"));
}

TEST_F(GuardTest, TokensOfAMinuteAreCountedAtTheEnd) {
  UseTenants();
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/generate", kGenerate, kBob).status, 200);  // 5 + 1 of 5
  const RawResponse refused = Post("/generate", kGenerate, kBob);
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("at most 5 tokens a minute (`tokens_per_minute`)"));
  EXPECT_GE(std::stoi(refused.headers.at("retry-after")), 9);
}

TEST_F(GuardTest, APriorityHasTheCeilingOfTheKey) {
  UseTenants();
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/generate", kGenerate, std::string(kAlice) + "X-Penstock-Priority: 5\r\n").status,
            200);
  const RawResponse refused =
      Post("/generate", kGenerate, std::string(kAlice) + "X-Penstock-Priority: 6\r\n");
  EXPECT_EQ(refused.status, 422);
  EXPECT_THAT(refused.body, HasSubstr("the header `x-penstock-priority` must be at most 5 with the "
                                      "API key `alice`. Given: 6"));
}

TEST_F(GuardTest, PrefixesAreSharedIfTheFileSaysSo) {
  UseTenants("prefix_cache: shared\n");
  AnswerWith({"a"}, FinishReason::kLength);
  Post("/generate", kGenerate, kAlice);
  EXPECT_TRUE(engine_.WaitForCall()->request.shares_prefixes);
}

TEST_F(GuardTest, MetricsShowATenantItsOwnSeriesOnly) {
  UseTenants();
  api_.admin_key_name = "bob";
  AnswerWith({"a"}, FinishReason::kLength);
  Post("/generate", kGenerate, kAlice);
  Post("/generate", kGenerate, kBob);
  const auto alice = HasSubstr("penstock_tenant_requests_total{tenant=\"alice\"} 1\n");
  const auto bob = HasSubstr("penstock_tenant_requests_total{tenant=\"bob\"} 1\n");
  EXPECT_THAT(Get("/metrics").body, AllOf(Not(alice), Not(bob), HasSubstr("penstock_requests_")));
  EXPECT_THAT(Get("/metrics", kAlice).body, AllOf(alice, Not(bob)));
  EXPECT_THAT(Get("/metrics", kBob).body, AllOf(alice, bob)) << "the admin's key";
}

TEST_F(GuardTest, ARequestThatCostsTooMuchIsRefused) {
  api_.max_request_cost = 100;
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/generate", kGenerate).status, 200);
  const RawResponse refused =
      Post("/v1/completions", R"({"model":"demo","prompt":"a","max_tokens":60,"n":2})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("may cost at most 100 (--max-request-cost). Given: 120"));
}

TEST_F(GuardTest, ADeadlineEndsTheAnswerWithOneError) {
  Start();
  RawClient client(port_);
  client.Send(testing::Post("/v1/completions", R"({"model":"demo","prompt":"a","stream":true})",
                            "X-Request-Timeout: 100ms\r\n"));
  const auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  call->Send({GenerationStart{}, testing::TokenEvent(0, 1, "x", -1)});
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.status, 200);
  EXPECT_THAT(
      response.body,
      AllOf(HasSubstr("\"code\":\"deadline_exceeded\""),
            HasSubstr("the answer took too long: the header `x-request-timeout` allows 100 ms"),
            Not(HasSubstr("[DONE]"))));
  EXPECT_TRUE(engine_.WaitForCancel(call->id));
}

TEST_F(GuardTest, AWrongDeadlineIsNamed) {
  AnswerWith({"a"}, FinishReason::kLength);
  for (const char* right : {"30", "0.5", "250ms", "5m", "86400s"}) {
    EXPECT_EQ(
        Post("/generate", kGenerate, std::string("X-Request-Timeout: ") + right + "\r\n").status,
        200)
        << right;
  }
  for (const char* wrong : {"0", "-1", "soon", "1h", "86401", "nan", "1e99"}) {
    const RawResponse refused =
        Post("/generate", kGenerate, std::string("X-Request-Timeout: ") + wrong + "\r\n");
    EXPECT_EQ(refused.status, 422) << wrong;
    EXPECT_THAT(refused.body, HasSubstr("the header `x-request-timeout` must be from 1ms"));
  }
}

TEST_F(GuardTest, ADeadlineBelowThePredictedWaitIsRefusedAtOnce) {
  Queue(8, 4);  // a new one waits 20 s
  const RawResponse refused = Post("/generate", kGenerate, "X-Request-Timeout: 19s\r\n");
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(refused.headers.contains("retry-after"));
  EXPECT_THAT(refused.body, HasSubstr("would wait about 20.0 s before it starts, but the header "
                                      "`x-request-timeout` allows 19.0 s"));
  EXPECT_EQ(Post("/generate", kGenerate, "X-Request-Timeout: 21s\r\n").status, 200);
}

TEST_F(GuardTest, TheQueueIsBoundedByThePredictedWait) {
  api_.max_queue_wait = std::chrono::seconds(15);
  Queue(8, 4);
  EXPECT_THAT(Post("/generate", kGenerate).body,
              HasSubstr("would wait about 20.0 s before it starts, but --max-queue-wait allows"));
  metrics_.scheduler().SetQueue(5, 4);
  EXPECT_EQ(Post("/generate", kGenerate).status, 200);
}

TEST_F(GuardTest, ATenantBelowItsPartIsNotRefusedForTheQueueOfOthers) {
  UseTenants();
  api_.max_queue_wait = std::chrono::seconds(15);
  Queue(100, 4);
  EXPECT_EQ(Post("/generate", kGenerate, kBob).status, 200);
}

TEST(MetricsPage, LosesWholeLinesOfTenants) {
  const std::string page =
      "# HELP penstock_tenant_x_total X.\npenstock_tenant_x_total{tenant=\"a\"} 1\n"
      "penstock_tenant_x_total{tenant=\"ab\"} 2\npenstock_y 3\n";
  EXPECT_EQ(WithoutTenants(page, std::nullopt),
            "# HELP penstock_tenant_x_total X.\npenstock_y 3\n");
  EXPECT_THAT(WithoutTenants(page, "a"), AllOf(HasSubstr("\"a\"} 1"), Not(HasSubstr("\"ab\""))));
}

}  // namespace
}  // namespace penstock::router
