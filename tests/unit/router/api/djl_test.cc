#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using testing::RawResponse;

class DjlTest : public ApiTest {
 protected:
  DjlTest() { dialects_.djl.is_default = true; }

  // What the engine was asked for by this body.
  GenerationRequest Lowered(std::string_view body) {
    GenerationRequest seen;
    engine_.script = [&seen](const GenerationRequest& request) {
      seen = request;
      return Events({"x"}, FinishReason::kLength, 1, false);
    };
    const RawResponse response = Post("/invocations", body);
    EXPECT_EQ(response.status, 200) << response.body;
    return seen;
  }
};

TEST_F(DjlTest, PlainAnswers) {
  AnswerWith({" Hello", " big"}, FinishReason::kLength);
  const RawResponse response = Post("/invocations", R"({"inputs":"Hi"})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("content-type"), "application/json");
  EXPECT_EQ(response.body, R"({"generated_text":" Hello big"})");
  EXPECT_EQ(Post("/invocations", R"({"inputs":"Hi","parameters":{"return_full_text":true}})").body,
            R"({"generated_text":"Hi Hello big"})");
  EXPECT_EQ(
      Post("/invocations", R"({"inputs":"Hi","parameters":{"details":true}})").body,
      R"({"generated_text":" Hello big","details":{"finish_reason":"length","generated_tokens":2,)"
      R"("inputs":"Hi","tokens":[{"id":1,"text":" Hello","log_prob":-0.25},)"
      R"({"id":2,"text":" big","log_prob":-0.5}]}})");
}

TEST_F(DjlTest, DefaultsAreTheSequenceSchedulers) {
  const GenerationRequest plain = Lowered(R"({"inputs":"a"})");
  EXPECT_EQ(plain.max_new_tokens, 30u);
  EXPECT_FALSE(plain.sampling.do_sample);
  EXPECT_EQ(plain.sampling.penalty_alpha, 0.0f);
  EXPECT_EQ(plain.request_class, RequestClass::kDjl);
  const SamplingParams sampled =
      Lowered(R"({"inputs":"a","parameters":{"do_sample":true}})").sampling;
  EXPECT_TRUE(sampled.do_sample);
  EXPECT_EQ(sampled.top_k, 4u);
  EXPECT_EQ(sampled.top_p, 1.0f);
  const SamplingParams contrastive =
      Lowered(R"({"inputs":"a","parameters":{"decoding_strategy":"contrastive"}})").sampling;
  EXPECT_FALSE(contrastive.do_sample);
  EXPECT_EQ(contrastive.penalty_alpha, 0.6f);
  EXPECT_EQ(contrastive.top_k, 4u);
}

TEST_F(DjlTest, TopPCountsWhereTopKIsOff) {
  const auto sampling = [this](const std::string& parameters) {
    return Lowered(R"({"inputs":"a","parameters":{"do_sample":true,)" + parameters + "}}").sampling;
  };
  EXPECT_EQ(sampling(R"("top_k":0)").top_p, 0.92f);
  EXPECT_EQ(sampling(R"("top_k":-1)").top_k, 0u);
  EXPECT_EQ(sampling(R"("top_p":0.5)").top_k, 0u);
  EXPECT_EQ(sampling(R"("top_p":0.5)").top_p, 0.5f);
  EXPECT_EQ(sampling(R"("top_p":0.5,"top_k":7)").top_k, 7u);
}

TEST_F(DjlTest, DoSampleForcesSamplingWhateverTheStrategy) {
  dialects_.djl.decoding_strategy = "contrastive";
  const GenerationRequest sampled =
      Lowered(R"({"inputs":"The new movie that got Oscar this year",)"
              R"("parameters":{"max_new_tokens":50, "do_sample":true}})");
  EXPECT_TRUE(sampled.sampling.do_sample);
  EXPECT_EQ(sampled.sampling.penalty_alpha, 0.0f);
  EXPECT_EQ(sampled.max_new_tokens, 50u);
  EXPECT_EQ(Lowered(R"({"inputs":"a"})").sampling.penalty_alpha, 0.6f);
}

TEST_F(DjlTest, ContrastiveWithoutPenaltyIsGreedy) {
  const auto alpha = Lowered(
      R"({"inputs":"a","parameters":{"decoding_strategy":"contrastive","penalty_alpha":0}})");
  EXPECT_EQ(alpha.sampling, SamplingParams{});
}

TEST_F(DjlTest, JsonLinesWhereTheBodySaysStream) {
  AnswerWith({" Hello", "</s>"}, FinishReason::kEos);
  const RawResponse response =
      Post("/invocations", R"({"inputs":"Hi","stream":true,"parameters":{"details":true}})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("content-type"), "application/jsonlines");
  EXPECT_EQ(response.body,
            "{\"token\":{\"id\":1,\"text\":\" Hello\",\"log_prob\":-0.25}}\n"
            "{\"token\":{\"id\":2,\"text\":\"\",\"log_prob\":-0.5,\"special_token\":true},"
            "\"generated_text\":\" Hello\",\"details\":{\"finish_reason\":\"eos_token\","
            "\"generated_tokens\":2,\"inputs\":\"Hi\"}}\n");
}

TEST_F(DjlTest, ServerSentEventsByTheFormatter) {
  AnswerWith({"a", "b"}, FinishReason::kLength);
  const RawResponse response =
      Post("/invocations", R"({"inputs":"Hi","parameters":{"output_formatter":"sse"}})");
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(response.body,
            "data: {\"token\":{\"id\":1,\"text\":\"a\",\"log_prob\":-0.25}}\n\n"
            "data: {\"token\":{\"id\":2,\"text\":\"b\",\"log_prob\":-0.5},"
            "\"generated_text\":\"ab\"}\n\n");
}

TEST_F(DjlTest, TgiCompatibleShape) {
  dialects_.djl.tgi_compat = true;
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/invocations", R"({"inputs":"Hi"})").body,
            R"([{"generated_text":"a","details":{"finish_reason":"length","generated_tokens":1,)"
            R"("seed":null,"inputs":"Hi",)"
            R"("tokens":[{"id":1,"text":"a","logprob":-0.25,"special":false}]}}])");
  EXPECT_EQ(Post("/invocations", R"({"inputs":"Hi","stream":true})").headers.at("content-type"),
            "text/event-stream");
}

// A failing input neither fails the other inputs nor changes their places.
TEST_F(DjlTest, AListIsAnsweredInItsOrder) {
  engine_.script = [](const GenerationRequest& request) -> std::vector<GenerationEvent> {
    const std::string text = std::get<std::string>(request.prompt);
    if (text != "bad") return Events({text + "!"}, FinishReason::kLength, 1, false);
    GenerationError error;
    error.kind = ErrorKind::kGeneration;
    error.message = "it broke";
    return {error};
  };
  const RawResponse response = Post("/invocations", R"({"inputs":["a","bad","c"]})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body,
            R"([{"generated_text":"a!"},{"code":424,"error":"it broke","generated_text":null,)"
            R"("details":{"finish_reason":"error"}},{"generated_text":"c!"}])");
}

// What all inputs share is not each one's fault.
TEST_F(DjlTest, AListWhoseCommonParameterIsWrongFailsAsOne) {
  FailWith({ErrorKind::kValidation, "`truncate` is too large", "truncate", {}});
  for (const char* body : {R"({"inputs":["a","b"],"parameters":{"truncate":999}})",
                           R"({"inputs":["a","b"],"parameters":{"truncate":999},"stream":true})"}) {
    const RawResponse response = Post("/invocations", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_THAT(response.body, HasSubstr(R"({"code":400,"error":"`truncate` is too large")"));
  }
  AnswerWith({"a"}, FinishReason::kLength);
  const RawResponse longer =
      Post("/invocations", R"({"inputs":["a","b"],"parameters":{"max_new_tokens":256}})");
  EXPECT_EQ(longer.status, 400);
  EXPECT_THAT(longer.body, HasSubstr("`max_new_tokens` must be below 256"));
  EXPECT_THAT(longer.body, HasSubstr("Given: 256"));
  EXPECT_EQ(Post("/invocations", R"({"inputs":"a","parameters":{"max_new_tokens":255}})").status,
            200);
}

TEST_F(DjlTest, OwnRoutesRefuseInTheSameEnvelope) {
  api_.keys = std::make_shared<KeyRing>(*ApiKeys::Parse("secret"));
  Start();
  const auto ask = [this](const std::string& line, const std::string& headers) {
    return testing::RawClient::Fetch(
        port_, line + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + "\r\n");
  };
  const std::string key = "Authorization: Bearer secret\r\n";
  const std::pair<RawResponse, int> refused[] = {
      {ask("DELETE /cached_prompts/77", key), 404}, {ask("DELETE /cached_prompts/x", key), 404},
      {ask("DELETE /cached_prompts/", key), 404},   {ask("POST /cached_prompts", key), 405},
      {ask("DELETE /cached_prompts/77", ""), 401},  {ask("GET /requests/none", key), 404},
  };
  for (const auto& [response, status] : refused) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_THAT(response.body, HasSubstr("{\"code\":" + std::to_string(status) + ",\"type\":\""));
    EXPECT_THAT(response.body, HasSubstr("\"message\":\""));
  }
}

TEST_F(DjlTest, AStreamedListNamesItsInputs) {
  engine_.script = [](const GenerationRequest& request) {
    return Events({std::get<std::string>(request.prompt)}, FinishReason::kLength, 1, false);
  };
  const RawResponse response = Post("/invocations", R"({"inputs":["a","b"],"stream":true})");
  EXPECT_THAT(response.body, HasSubstr("{\"index\":0,\"token\":{\"id\":1,\"text\":\"a\""));
  EXPECT_THAT(response.body, HasSubstr("{\"index\":1,\"token\":{\"id\":1,\"text\":\"b\""));
}

TEST_F(DjlTest, ErrorsHaveDjlsEnvelopes) {
  AnswerWith({"a"}, FinishReason::kLength);
  const auto expect = [this](std::string_view body, int status, std::string_view text) {
    const RawResponse response = Post("/invocations", body);
    EXPECT_EQ(response.status, status) << body;
    EXPECT_THAT(response.body, HasSubstr("{\"code\":" + std::to_string(status))) << body;
    EXPECT_THAT(response.body, HasSubstr(std::string(text))) << body;
  };
  expect("[]", 424, "Input Parsing failed. ");
  expect("{}", 424, "missing field `inputs`");
  expect(R"({"inputs":5})", 424, "inputs: invalid type");
  expect(R"({"inputs":"a","parameters":[1]})", 424, "parameters: invalid type");
  expect(R"({"inputs":[]})", 400, "`inputs` must be a string or a list with at least one");
  expect(R"({"inputs":"a","parameters":{"temperature":0}})", 400,
         "`temperature` must be above 0. Given: 0.0");
  expect(R"({"inputs":"a","parameters":{"decoding_strategy":"beam"}})", 400,
         "`decoding_strategy` must be greedy, sample or contrastive");
  expect(R"({"inputs":"a","parameters":{"num_beams":3}})", 400, "`num_beams` must be 1. Given: 3");
}

TEST_F(DjlTest, ARangeErrorNamesTheKeyThatTheClientSent) {
  const auto error = [this](std::string_view parameters) {
    return Post("/predictions/demo",
                R"({"inputs":"a","parameters":{)" + std::string(parameters) + "}}")
        .body;
  };
  EXPECT_THAT(error(R"("max_tokens":0)"), HasSubstr("`max_tokens` must be at least 1"));
  EXPECT_THAT(error(R"("max_new_tokens":0)"), HasSubstr("`max_new_tokens` must be at least 1"));
  EXPECT_THAT(error(R"("max_tokens":3,"min_length":4)"),
              HasSubstr("`min_length` must be at most `max_tokens`, 3"));
}

TEST_F(DjlTest, AFullQueueIsAnsweredAtOnceWith503) {
  api_.max_concurrent_requests = 2;
  Start();
  testing::RawClient holder(port_);
  holder.Send(testing::Post("/invocations", R"({"inputs":"a"})"));
  auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  const RawResponse response = Post("/invocations", R"({"inputs":["a","b"]})");
  EXPECT_EQ(response.status, 503);
  EXPECT_THAT(response.body, HasSubstr(R"({"code":503,"type":"WlmCapacityException","message":)"));
  call->Send(Events({"a"}, FinishReason::kLength, 0, false));
  EXPECT_EQ(holder.ReadResponse().status, 200);
}

TEST_F(DjlTest, AListThatNeverFitsTheQueueIsInvalid) {
  api_.max_concurrent_requests = 1;
  const RawResponse response = Post("/invocations", R"({"inputs":["a","b"]})");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("`inputs` must have at most 1 entries"));
  EXPECT_THAT(response.body, HasSubstr("Given: 2"));
}

TEST_F(DjlTest, TheLastPartOfItsNameNamesTheModel) {
  engine_.facts.served_name = "/opt/ml/model/";
  AnswerWith({"a"}, FinishReason::kLength);
  for (const char* path : {"/predictions/model", "/predictions/model/1", "/models/model/invoke"}) {
    EXPECT_EQ(Post(path, R"({"inputs":"a"})").status, 200) << path;
  }
  const RawResponse response = Post("/predictions/other", R"({"inputs":"a"})");
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(response.body, HasSubstr("ModelNotFoundException"));
}

TEST_F(DjlTest, InvocationsRefuseAModelThatIsNotServed) {
  AnswerWith({"a"}, FinishReason::kLength);
  for (const char* query : {"", "?model_name=demo", "?x=1&model_name=org%2fdemo"}) {
    EXPECT_EQ(Post(std::string("/invocations") + query, R"({"inputs":"a"})").status, 200) << query;
  }
  for (const char* body : {R"({"inputs":"a"})", R"({"inputs":["a"]})", R"({"messages":[]})"}) {
    EXPECT_EQ(Post("/invocations?model_name=nope", body).status, 404) << body;
  }
}

TEST_F(DjlTest, TheHeaderNamesTheModelWhereTheQueryDoesNot) {
  AnswerWith({"a"}, FinishReason::kLength);
  const auto status = [this](const std::string& query, const std::string& name) {
    return Post("/invocations" + query, R"({"inputs":"a"})", "model_name: " + name + "\r\n").status;
  };
  EXPECT_EQ(status("", "demo"), 200);
  EXPECT_EQ(status("", "nope"), 404);
  EXPECT_EQ(status("?model_name=", "nope"), 404);
  EXPECT_EQ(status("?model_name=demo", "nope"), 200);
}

TEST_F(DjlTest, AModelNameInTheBodyHasNoEffect) {
  api_.strict_json = true;
  AnswerWith({"a"}, FinishReason::kLength);
  for (const char* name : {R"("demo")", R"("nope")", "5", "null"}) {
    const std::string body = std::string(R"({"inputs":"a","model_name":)") + name + "}";
    const RawResponse response = Post("/invocations", body);
    EXPECT_EQ(response.status, 200) << body;
    EXPECT_EQ(response.headers.count("x-penstock-ignored"), 0u);
  }
}

TEST_F(DjlTest, AListOfWhichEveryInputFailsHasTheStatusOfTheFirst) {
  FailWith({ErrorKind::kGeneration, "it broke", "", {}});
  const RawResponse response = Post("/predictions/demo", R"({"inputs":["a","b"]})");
  EXPECT_EQ(response.status, 424);
  EXPECT_THAT(response.body, ::testing::StartsWith("[{\"code\":424"));
}

// Without the profile a body is DJL's by its own keys.
TEST_F(DjlTest, TheBodysKeysDecideBeforeTheDefault) {
  dialects_.djl.is_default = false;
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/invocations", R"({"inputs":"a"})").body, R"([{"generated_text":"aa"}])");
  for (const char* body :
       {R"({"inputs":"a","parameters":{"penalty_alpha":0.5}})",
        R"({"inputs":"a","cached_prompt":"p"})",
        R"({"parameters":{"top_k":1,"decoding_strategy":"greedy"},"inputs":"a"})"}) {
    EXPECT_EQ(Post("/invocations", body).body, R"({"generated_text":"a"})") << body;
  }
  EXPECT_EQ(Post("/invocations", R"({"inputs":["a"]})").body, R"([{"generated_text":"a"}])");
}

}  // namespace
}  // namespace penstock::router
