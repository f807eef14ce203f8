// The access log and the metrics show how a request ended.
#include <memory>
#include <string>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawClient;
using testing::TokenEvent;

constexpr std::string_view kChat = "/v1/chat/completions";

class RequestEndTest : public ApiTest {
 protected:
  RequestEndTest() { ::testing::internal::CaptureStderr(); }

  // The log once every request has ended.
  std::string Log() {
    service_->Stop(Duration{0});
    return ::testing::internal::GetCapturedStderr();
  }
  // Responses with this status that ended with this error.
  bool Counted(int status, std::string_view error, std::string_view route) {
    const std::string line = "penstock_http_responses_total{code=\"" + std::to_string(status) +
                             "\",error=\"" + std::string(error) + "\",route=\"" +
                             std::string(route) + "\"} 1\n";
    return metrics_.Render().find(line) != std::string::npos;
  }
  void FailAfterOneToken() {
    engine_.script = [](const GenerationRequest&) {
      return std::vector<GenerationEvent>{
          GenerationStart{}, TokenEvent(0, 1, "x", -1),
          GenerationError{ErrorKind::kGeneration, "rank 1 was lost", "", {}}};
    };
  }
};

TEST_F(RequestEndTest, AStreamThatFailsAfterItsHeadTellsItsError) {
  FailAfterOneToken();
  for (const std::string_view path : {kChat, std::string_view("/generate_stream")}) {
    const auto response =
        Post(path, R"({"messages":[{"role":"user","content":"a"}],"inputs":"a","stream":true})");
    EXPECT_EQ(response.status, 200) << path;
  }
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr("POST /v1/chat/completions 200,"));
  EXPECT_THAT(log, HasSubstr(", 1 tokens, error generation: rank 1 was lost\n"));
  EXPECT_TRUE(Counted(200, "generation", kChat));
  EXPECT_TRUE(Counted(200, "generation", "/generate_stream"));
}

TEST_F(RequestEndTest, AFinishedRequestTellsItsFinishReason) {
  AnswerWith({"a", "b"}, FinishReason::kLength);
  Post("/generate", R"({"inputs":"a"})");
  EXPECT_THAT(Log(), HasSubstr(", 2 tokens, finish reason length\n"));
  EXPECT_THAT(metrics_.Render(),
              HasSubstr("penstock_http_responses_total{code=\"200\",route=\"/generate\"} 1\n"));
}

TEST_F(RequestEndTest, AClientThatLeavesItsStreamIsNotAFailure) {
  Start();
  auto client = std::make_unique<RawClient>(port_);
  client->Send(testing::Post("/generate_stream", R"({"inputs":"a"})"));
  auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  call->Send({GenerationStart{}, TokenEvent(0, 1, "x", -1), TokenEvent(1, 2, "y", -1)});
  client->ReadHead();
  client.reset();
  EXPECT_TRUE(engine_.WaitForCancel(call->id));
  EXPECT_THAT(Log(), HasSubstr(", 2 tokens, error cancelled: the client went away\n"));
  EXPECT_TRUE(Counted(499, "cancelled", "/generate_stream"));
}

TEST_F(RequestEndTest, AnAnswerThatTakesTooLongTellsIt) {
  http_.total_timeout = std::chrono::milliseconds(50);
  Start();
  RawClient client(port_);
  client.Send(testing::Post("/generate", R"({"inputs":"a"})"));
  EXPECT_EQ(client.ReadResponse().status, 504);
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr(", error deadline: the answer took too long\n"));
  EXPECT_THAT(log, Not(HasSubstr("0 tokens")));
  EXPECT_TRUE(Counted(504, "deadline", "/generate"));
}

TEST_F(RequestEndTest, AProbeThatFailsTellsWhy) {
  engine_.SetHealth({Health::kFailed, "rank 1 was lost"});
  EXPECT_EQ(Get("/health").status, 503);
  EXPECT_EQ(Get("/ready").status, 503);
  engine_.SetHealth({Health::kDraining, ""});
  EXPECT_EQ(Get("/ping").status, 503);
  const std::string log = Log();
  EXPECT_THAT(log, ContainsRegex("GET /health 503,[^\n]*, error unavailable: rank 1 was lost\n"));
  EXPECT_THAT(log, ContainsRegex("GET /ready 503,[^\n]*, error unavailable: rank 1 was lost\n"));
  EXPECT_THAT(log, ContainsRegex("GET /ping 503,[^\n]*, error unavailable: draining\n"));
  EXPECT_TRUE(Counted(503, "unavailable", "/health"));
  EXPECT_TRUE(Counted(503, "unavailable", "/ready"));
}

TEST_F(RequestEndTest, ARequestThatTheEngineForgotIsAnInternalError) {
  Start();
  RawClient client(port_);
  client.Send(testing::Post("/generate", R"({"inputs":"a"})"));
  ASSERT_TRUE(engine_.WaitForCall());
  engine_.ForgetCalls();
  EXPECT_EQ(client.ReadResponse().status, 500);
  EXPECT_THAT(Log(), HasSubstr(", error internal: the request was dropped\n"));
}

TEST_F(RequestEndTest, ARefusalTellsWhyWithTheRequestsId) {
  EXPECT_EQ(
      Post("/v1/completions", R"({"prompt":"a","temperature":5})", "X-Request-Id: mine\r\n").status,
      400);
  EXPECT_EQ(Post("/v1/completions", R"({"prompt":"a","model":"b\nc"})").status, 404);
  EXPECT_EQ(Post("/generate_stream", R"({"inputs":"a","parameters":{"top_p":5}})").status, 200);
  EXPECT_EQ(Get("/nowhere").status, 404);
  const std::string log = Log();
  EXPECT_THAT(log, HasSubstr("POST /v1/completions 400,"));
  EXPECT_THAT(log, HasSubstr(" request mine from "));
  EXPECT_THAT(log,
              HasSubstr(", error validation: `temperature` must be from 0.0 to 2.0. Given: 5.0\n"));
  // What the client wrote cannot begin a line of its own.
  EXPECT_THAT(log, HasSubstr(", error model_not_found: the model `b c` does not exist."));
  EXPECT_THAT(log, HasSubstr(", error validation: `top_p` must be > 0.0 and < 1.0\n"));
  EXPECT_THAT(log, HasSubstr(", error not_found: no such route: GET /nowhere\n"));
  EXPECT_TRUE(Counted(200, "validation", "/generate_stream"));
  EXPECT_TRUE(Counted(400, "validation", "/v1/completions"));
}

TEST_F(RequestEndTest, ABodyThatCannotBeReadTellsWhy) {
  http_.limits.body_bytes = 10;
  EXPECT_EQ(Post("/generate", R"({"inputs":"a long one"})").status, 413);
  EXPECT_THAT(Log(), HasSubstr(", error too_large: "));
  EXPECT_TRUE(Counted(413, "too_large", "/generate"));
}

}  // namespace
}  // namespace penstock::router
