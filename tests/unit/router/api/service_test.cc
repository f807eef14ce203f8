#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "router/api/api.h"
#include "router/api/dialect_set.h"
#include "router/api/djl/dialect.h"
#include "router/api/errors.h"
#include "router/api/openai/dialect.h"
#include "router/api/tgi/dialect.h"
#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawClient;
using testing::RawResponse;
using testing::TokenEvent;

using ServiceTest = ApiTest;

TEST_F(ServiceTest, ADisconnectedStreamIsCancelledInTheEngineAndCountedOnce) {
  Start();
  auto client = std::make_unique<RawClient>(port_);
  client->Send(testing::Post("/generate_stream", R"({"inputs":"a"})"));
  auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  call->Send({GenerationStart{}, TokenEvent(0, 1, "x", -1)});
  client->ReadHead();
  client.reset();
  EXPECT_TRUE(engine_.WaitForCancel(call->id));
  EXPECT_FALSE(call->Send({TokenEvent(1, 1, "y", -1)}));
  const std::string metrics = metrics_.Render();
  EXPECT_THAT(metrics, HasSubstr("\npenstock_requests_cancelled_total 1\n"));
  EXPECT_THAT(metrics, Not(HasSubstr("penstock_requests_failure_total{")));
  EXPECT_THAT(metrics, Not(HasSubstr("penstock_requests_success_total{")));
}

TEST_F(ServiceTest, AClientThatLeavesWhileItWaitsForAPlainAnswerIsCancelled) {
  Start();
  auto client = std::make_unique<RawClient>(port_);
  client->Send(
      testing::Post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})"));
  auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  client.reset();
  EXPECT_TRUE(engine_.WaitForCancel(call->id));
}

TEST_F(ServiceTest, AClientThatReadsTooSlowlyIsCancelled) {
  http_.send_buffer = 4096;
  Start();
  RawClient client(port_, 4096);
  client.Send(testing::Post("/generate_stream", R"({"inputs":"a"})"));
  auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  const std::string text(1000, 'x');
  bool taken = true;
  for (std::uint32_t i = 0; i < 3000 && taken; ++i)
    taken = call->Send({TokenEvent(i, 1, text, -1)});
  EXPECT_FALSE(taken);
  EXPECT_TRUE(engine_.WaitForCancel(call->id));
  EXPECT_THAT(metrics_.Render(), HasSubstr("\npenstock_requests_cancelled_total 1\n"));
}

TEST_F(ServiceTest, AnEngineThatForgetsARequestIsAnError500) {
  Start();
  RawClient client(port_);
  client.Send(testing::Post("/generate", R"({"inputs":"a"})"));
  ASSERT_TRUE(engine_.WaitForCall());
  engine_.ForgetCalls();
  EXPECT_EQ(client.ReadResponse().status, 500);
}

TEST_F(ServiceTest, StoppingEndsStreamsAfterTheDrainTimeWithOneErrorEvent) {
  Start();
  RawClient client(port_);
  client.Send(testing::Post("/v1/completions", R"({"prompt":"a","stream":true})"));
  auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  call->Send({GenerationStart{}, TokenEvent(0, 1, "x", -1)});
  service_->Stop(milliseconds(20));
  const RawResponse response = client.ReadResponse();
  EXPECT_THAT(response.body, HasSubstr("\"message\":\"the server is stopping\""));
  EXPECT_THAT(response.body, Not(HasSubstr("[DONE]")));
  EXPECT_TRUE(engine_.WaitForCancel(call->id));
}

TEST_F(ServiceTest, AnAnswerThatTakesTooLongIsA504) {
  http_.total_timeout = milliseconds(50);
  Start();
  RawClient client(port_);
  client.Send(testing::Post("/generate", R"({"inputs":"a"})"));
  auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  EXPECT_EQ(client.ReadResponse().status, 504);
  EXPECT_TRUE(engine_.WaitForCancel(call->id));
}

TEST_F(ServiceTest, LatenciesAndTokensAreCounted) {
  AnswerWith({"a", "b", "c"}, FinishReason::kLength);
  Post("/generate", R"({"inputs":"a","unknown":1})");
  const std::string metrics = metrics_.Render();
  EXPECT_THAT(metrics, HasSubstr("penstock_requests_total{route=\"/generate\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("penstock_requests_success_total{finish_reason=\"length\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("penstock_time_to_first_token_seconds_count 1\n"));
  EXPECT_THAT(metrics, HasSubstr("penstock_inter_token_latency_seconds_count 2\n"));
  EXPECT_THAT(metrics, HasSubstr("penstock_prompt_tokens_total 5\n"));
  EXPECT_THAT(metrics, HasSubstr("penstock_generated_tokens_total 3\n"));
  EXPECT_THAT(metrics, HasSubstr("penstock_unknown_keys_total{dialect=\"tgi\"} 1\n"));
}

// --- Routes and access

TEST_F(ServiceTest, UnknownRoutesAndMethodsAreOneLineInTheDialectOfThePath) {
  const RawResponse unknown = Get("/nowhere");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.body, R"({"error":"no such route: GET /nowhere","error_type":"not_found"})");
  const RawResponse openai = Get("/v1/nowhere");
  EXPECT_EQ(openai.status, 404);
  EXPECT_THAT(openai.body, HasSubstr(R"("message":"no such route: GET /v1/nowhere")"));
  const RawResponse method = Get("/generate");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.headers.at("allow"), "POST");
  EXPECT_EQ(method.body, R"({"error":"the method of /generate must be POST. Given: GET",)"
                         R"("error_type":"method_not_allowed"})");
  EXPECT_EQ(Post("/health", "{}").headers.at("allow"), "GET,HEAD");
  EXPECT_EQ(Get("/").status, 200);
  for (const char* path : {"/generate/", "//generate", "/Generate", "/g%65nerate", "/requests/"}) {
    EXPECT_EQ(Post(path, "{}").status, 404) << path;
  }
}

TEST_F(ServiceTest, AnUnknownRouteNamesTheOneThatMayBeMeant) {
  for (const char* path :
       {"/chat/completions", "/v1/chat/completions/", "/v1/v1/chat/completions"}) {
    const RawResponse response = Post(path, "{}");
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_THAT(response.body, HasSubstr("Did you mean /v1/chat/completions?")) << path;
  }
  EXPECT_THAT(Post("/generate/", "{}").body, HasSubstr("Did you mean /generate?"));
  EXPECT_THAT(Get("/models").body, HasSubstr("Did you mean /v1/models?"));
  EXPECT_THAT(Get("/nowhere").body, Not(HasSubstr("Did you mean")));
}

TEST_F(ServiceTest, OptionsAnswers200AndSaysWhatIsAllowed) {
  Start();
  const RawResponse response =
      RawClient::Fetch(port_, "OPTIONS /generate HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("allow"), "POST");
}

RawResponse Preflight(std::uint16_t port, std::string_view asked) {
  std::string request =
      "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\nOrigin: http://page\r\n"
      "Access-Control-Request-Method: POST\r\n";
  request.append("Access-Control-Request-Headers: ").append(asked).append("\r\n\r\n");
  return RawClient::Fetch(port, request);
}

TEST_F(ServiceTest, APageOfAnotherOriginMaySendTheHeadersOfSdksAndUseEveryMethod) {
  api_.cors_origins = {"*"};
  api_.cors_headers = {"X-Own", "x-team-*"};
  Start();
  const RawResponse response = Preflight(
      port_,
      "authorization, openai-beta,X-Stainless-Lang,x-penstock-priority,x-other,x-team-a,,x-own");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("access-control-allow-origin"), "*");
  EXPECT_EQ(response.headers.at("access-control-allow-headers"),
            "authorization,x-api-key,content-type,x-request-id,x-own,openai-beta,x-stainless-lang,"
            "x-penstock-priority,x-team-a");
  const std::string methods = response.headers.at("access-control-allow-methods");
  const DialectSet dialects = MakeDialects(dialects_);
  for (const auto& [route, dialect] : dialects.served()) {
    EXPECT_THAT(methods, HasSubstr(route->method)) << route->pattern;
  }
}

TEST_F(ServiceTest, APageOfAnotherOriginReadsHeadersOfAnswersAndRefusals) {
  api_.cors_origins = {"http://page"};
  AnswerWith({"a"}, FinishReason::kLength);
  for (const RawResponse& response :
       {Post("/generate", R"({"inputs":"a"})", "Origin: http://page\r\n"),
        Get("/nowhere", "Origin: http://page\r\n")}) {
    EXPECT_EQ(response.headers.at("access-control-allow-origin"), "http://page");
    const std::string exposed = "," + response.headers.at("access-control-expose-headers") + ",";
    for (const auto& [name, value] : response.headers) {
      if (!name.starts_with("x-")) continue;
      EXPECT_THAT(exposed, HasSubstr("," + name + ","));
    }
  }
}

TEST_F(ServiceTest, TheContentTypeMustBeJson) {
  AnswerWith({"a"}, FinishReason::kLength);
  Start();
  const auto post = [&](std::string_view type) {
    std::string request = "POST /generate HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n";
    if (!type.empty()) request.append("Content-Type: ").append(type).append("\r\n");
    return RawClient::Fetch(port_, request + "\r\n{\"inputs\":\"a\"}");
  };
  for (const char* good : {"application/json", "Application/JSON; charset=utf-8",
                           "application/vnd.api+json", "application/json+x", "application/json;",
                           "application/json; charset=", "application/json;a=b; c=\"d e\" ; f=g"}) {
    EXPECT_EQ(post(good).status, 200) << good;
  }
  for (const char* bad :
       {"", "text/plain", "json", "application/ json", "*/*", "application/json, text/plain",
        "application/+json", "application/x+json+y", "application/json; charset",
        "application/json ;a=b", "application/json;;", "application/json;a=b c",
        "application/json;a=\"b", "application/json; =b", "application/json; charset=\xc3\xa9"}) {
    const RawResponse response = post(bad);
    EXPECT_EQ(response.status, 415) << bad;
    EXPECT_EQ(response.body, "Expected request with `Content-Type: application/json`");
  }
}

TEST_F(ServiceTest, BrokenRequestsAreAnsweredInTheDialectOfThePath) {
  http_.limits.body_bytes = 100;
  const std::string large(101, 'x');
  const RawResponse tgi = Post("/generate", large);
  EXPECT_EQ(tgi.status, 413);
  EXPECT_EQ(tgi.body,
            "Failed to buffer the request body: length limit exceeded: the body must have at most "
            "100 bytes. Given: 101");
  const RawResponse openai = Post("/v1/completions", large);
  EXPECT_EQ(openai.status, 413);
  EXPECT_THAT(openai.body, HasSubstr("\"code\":\"request_too_large\""));
  const RawResponse framing =
      RawClient::Fetch(port_, "GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
  EXPECT_EQ(framing.status, 400);
  EXPECT_EQ(framing.body, R"({"error":"`Host` is given twice","error_type":"bad_request"})");
}

TEST_F(ServiceTest, WithAKeyEveryRouteIsClosedUnlessItsRowOpensIt) {
  api_.keys = std::make_shared<KeyRing>(ApiKeys::Parse("open-sesame").value());
  api_.admin_key_name = "default";  // routes that change what others get want the key of that name
  AnswerWith({"a"}, FinishReason::kLength);
  const DialectSet dialects = MakeDialects({});
  for (const auto& [served, dialect] : dialects.served()) {
    const Route& route = *served;
    std::string path(route.pattern);
    if (path.ends_with("{id}")) path.replace(path.size() - 4, 4, "demo");
    const auto call = [&](std::string_view headers) {
      return route.method == "GET" ? Get(path, headers) : Post(path, R"({"inputs":"a"})", headers);
    };
    const bool open = route.access == Access::kPublic;
    for (const char* wrong :
         {"", "Authorization: Bearer wrong\r\n", "Authorization: Bearer open-sesam\r\n",
          "Authorization: Bearer OPEN-SESAME\r\n", "Authorization: open-sesame\r\n",
          "Authorization: Basic open-sesame\r\n", "Authorization:\r\n", "X-Api-Key: wrong\r\n"}) {
      EXPECT_EQ(call(wrong).status == 401, !open) << route.pattern << " " << wrong;
    }
    const bool anthropic = route.pattern.starts_with("/v1/messages");
    EXPECT_EQ(call("X-Api-Key: open-sesame\r\n").status == 401, !open && !anthropic)
        << route.pattern;
    EXPECT_NE(call("Authorization: Bearer open-sesame\r\n").status, 401) << route.pattern;
    EXPECT_NE(call("authorization: bearer  open-sesame\r\n").status, 401) << route.pattern;
  }
  const RawResponse refused = Post("/v1/completions", "{}");
  EXPECT_EQ(refused.headers.at("www-authenticate"), "Bearer");
  EXPECT_THAT(refused.body, HasSubstr("\"code\":\"invalid_api_key\""));
  EXPECT_THAT(refused.body, HasSubstr("an API key is missing: send it in the header "
                                      "`Authorization: Bearer KEY` (curl: -H 'Authorization: "
                                      "Bearer KEY'); the operator set it with --api-key or "
                                      "--api-keys-file"));
  EXPECT_THAT(Post("/generate", "{}", "Authorization: Bearer wrong\r\n").body,
              HasSubstr("the API key is wrong: send it in the header"));
  EXPECT_EQ(Get("/generate").status, 401);  // methods are not told without the key
  EXPECT_EQ(RawClient::Fetch(port_, "PUT / HTTP/1.1\r\nHost: x\r\n\r\n").status,
            405);  // GET is open
}

TEST_F(ServiceTest, WithoutTheKeyALargeBodyIsUnauthorized) {
  api_.keys = std::make_shared<KeyRing>(ApiKeys::Parse("open-sesame").value());
  http_.limits.body_bytes = 100;
  EXPECT_EQ(Post("/generate", std::string(101, 'x')).status, 401);
  EXPECT_EQ(Post("/nowhere", std::string(101, 'x')).status, 404);
}

TEST(Access, ARouteIsClosedUnlessItSaysOtherwise) {
  EXPECT_EQ(Route{}.access, Access::kKey);
  const DialectSet dialects = MakeDialects({});
  for (const auto& [served, dialect] : dialects.served()) {
    const Route& route = *served;
    // TGI's tokenizer route for chats has always been open.
    if (route.method != "POST" || route.pattern == "/chat_tokenize") continue;
    EXPECT_EQ(route.access, Access::kKey) << route.pattern;
  }
}

// --- Probes and records

TEST_F(ServiceTest, ProbesShowTheHealthOfTheEngine) {
  EXPECT_EQ(Get("/health").status, 200);
  EXPECT_EQ(Get("/health").body, "");
  EXPECT_EQ(Get("/", "Accept: */*\r\n").status, 200);
  EXPECT_EQ(Get("/ready").body, R"({"status":"ready"})");
  engine_.SetHealth({Health::kFailed, "rank 1 was lost"});
  const RawResponse health = Get("/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(health.body, R"({"error":"unhealthy","error_type":"healthcheck"})");
  const RawResponse ready = Get("/ready");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(ready.body, R"({"status":"failed","detail":"rank 1 was lost"})");
  EXPECT_EQ(Get("/live").status, 200);
  engine_.SetHealth({Health::kDraining, ""});
  EXPECT_EQ(Get("/ping").status, 503);
  EXPECT_EQ(Get("/health").body, R"({"error":"draining","error_type":"healthcheck"})");
}

TEST_F(ServiceTest, WhileDrainingStreamsAreRefusedWithAStatus) {
  engine_.SetHealth({Health::kDraining, "the server is shutting down"});
  for (const auto& [path, body] :
       {std::pair("/generate_stream", R"({"inputs":"a"})"),
        std::pair("/", R"({"inputs":"a","stream":true})"),
        std::pair("/vertex", R"({"instances":[{"inputs":"a"}]})"),
        std::pair("/v1/completions", R"({"prompt":"a","stream":true})")}) {
    const RawResponse response = Post(path, body);
    EXPECT_EQ(response.status, 503) << path;
    EXPECT_EQ(response.headers.at("retry-after"), "2") << path;
    EXPECT_THAT(response.body, HasSubstr("the server is shutting down")) << path;
  }
  EXPECT_EQ(Post("/tokenize", R"({"inputs":"a"})").status, 200);
  EXPECT_THAT(metrics_.Render(),
              HasSubstr("penstock_requests_failure_total{kind=\"unavailable\"} 4\n"));
  EXPECT_THAT(Post("/v1/completions", R"({"prompt":"a"})").body,
              HasSubstr(R"("code":"server_draining")"));
}

TEST_F(ServiceTest, MetricsAreServed) {
  const RawResponse response = Get("/metrics");
  EXPECT_THAT(response.headers.at("content-type"), HasSubstr("text/plain"));
  EXPECT_THAT(response.body, HasSubstr("penstock_requests_cancelled_total 0\n"));
}

TEST_F(ServiceTest, ARecordHasTheDecisionsWithTheirReasons) {
  RequestRecord record;
  record.request = RequestId(12);
  record.client_id = "abc";
  record.state = "running";
  record.prompt_tokens = 7;
  record.generated_tokens = 3;
  record.arrived = Time(seconds(5));
  Decision decision;
  decision.at = Time(seconds(5) + milliseconds(2));
  decision.kind = DecisionKind::kDeferred;
  decision.short_of = Budget::kBlocks;
  decision.needed = 9;
  decision.available = 4;
  decision.behind = RequestId(11);
  record.decisions.push_back(decision);
  decision = {};
  decision.at = Time(seconds(6));
  decision.kind = DecisionKind::kAdmitted;
  decision.step = StepId(3);
  record.decisions.push_back(decision);
  engine_.records["abc"] = record;
  const std::string expected =
      R"({"request":12,"client_id":"abc","state":"running","prompt_tokens":7,"generated_tokens":3,)"
      R"("cached_tokens":0,"preemptions":0,"losses":0,"decisions":[{"after_ms":2.0,"decision":"deferred",)"
      R"("short_of":"blocks","needed":9,"available":4,"behind":11},{"after_ms":1000.0,"decision":"admitted","step":3}]})";
  EXPECT_EQ(Get("/requests/abc").body, expected);
  EXPECT_EQ(Get("/requests/chatcmpl-abc").body, expected);
  EXPECT_EQ(Get("/requests/chatcmpl-abc-17").body, expected);
  EXPECT_EQ(Get("/requests/msg_abc-17").body, expected);
  EXPECT_EQ(Get("/requests/%61bc").body, expected);
  EXPECT_EQ(Get("/requests/other").status, 404);
}

TEST_F(ServiceTest, TheLastDecisionSaysThatARequestWasCancelled) {
  RequestRecord record;
  record.state = "cancelled";
  Decision decision;
  decision.kind = DecisionKind::kFinished;
  record.decisions.push_back(decision);
  engine_.records["abc"] = record;
  EXPECT_THAT(Get("/requests/abc").body, HasSubstr(R"("decision":"cancelled")"));
}

// --- Errors

std::vector<ApiErrorKind> AllKinds() {
  std::vector<ApiErrorKind> kinds;
  for (int kind = 0; kind <= static_cast<int>(ApiErrorKind::kInternal); ++kind) {
    kinds.push_back(static_cast<ApiErrorKind>(kind));
  }
  return kinds;
}

const ErrorFormat* const kFormats[] = {&tgi::Errors(), &openai::Errors(), &djl::Errors()};

// A table without a row for a kind would answer it as an internal error.
TEST(Errors, EveryKindHasItsOwnRowInEveryDialect) {
  for (const ApiErrorKind kind : AllKinds()) {
    EXPECT_EQ(NameOf(kind) == "internal", kind == ApiErrorKind::kInternal);
    for (const ErrorFormat* format : kFormats) {
      EXPECT_GE(format->Status(kind), 400);
      EXPECT_EQ(format->Status(kind) == 500 &&
                    format->Body({kind, "", ""}) == format->Body({ApiErrorKind::kInternal, "", ""}),
                kind == ApiErrorKind::kInternal)
          << NameOf(kind);
    }
    const bool busy = kind == ApiErrorKind::kOverloaded || kind == ApiErrorKind::kBodyMemory ||
                      kind == ApiErrorKind::kUnavailable || kind == ApiErrorKind::kDraining ||
                      kind == ApiErrorKind::kNoShard;
    EXPECT_EQ(RetryAfter(kind) > 0, busy) << NameOf(kind);
  }
}

TEST(Errors, EveryKindHasTheEnvelopesOfTgiAndOpenAi) {
  for (const ApiErrorKind kind : AllKinds()) {
    const ApiError error{kind, "the \"text\"", "field"};
    const HttpResponse tgi = tgi::Errors().Response(error);
    if (tgi.content_type == "text/plain; charset=utf-8") {
      EXPECT_EQ(tgi.body, tgi::TgiMessage(error));
    } else {
      const auto body = boost::json::parse(tgi.body);
      EXPECT_EQ(body.at("error"), boost::json::value(tgi::TgiMessage(error)));
      EXPECT_FALSE(body.at("error_type").as_string().empty());
    }
    const auto body = boost::json::parse(openai::Errors().Response(error).body).at("error");
    EXPECT_EQ(body.at("message"), "the \"text\"");
    EXPECT_FALSE(body.at("type").as_string().empty());
    EXPECT_EQ(body.at("param"), "field");
    EXPECT_FALSE(body.at("code").as_string().empty());
  }
}

}  // namespace
}  // namespace penstock::router
