#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawResponse;
using testing::TokenEvent;

using TgiTest = ApiTest;

TEST_F(TgiTest, PlainAnswerWithoutDetails) {
  AnswerWith({" Hello", " big"}, FinishReason::kLength);
  const RawResponse response = Post("/generate", R"({"inputs":"Hello"})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("content-type"), "application/json");
  EXPECT_EQ(response.body, R"({"generated_text":" Hello big"})");
}

// Byte for byte what TGI's router answers for the same events.
TEST_F(TgiTest, DetailsInTgisOrder) {
  AnswerWith({" Hello", " big", "</s>"}, FinishReason::kEos);
  const RawResponse response =
      Post("/generate", R"({"inputs":"Hello big","parameters":{"details":true}})");
  EXPECT_EQ(
      response.body,
      R"({"generated_text":" Hello big","details":{"finish_reason":"eos_token","generated_tokens":3,)"
      R"("seed":null,"prefill":[],"tokens":[{"id":1,"text":" Hello","logprob":-0.25,"special":false},)"
      R"({"id":2,"text":" big","logprob":-0.5,"special":false},)"
      R"({"id":3,"text":"</s>","logprob":-0.75,"special":true}]}})");
  EXPECT_EQ(response.headers.at("x-compute-characters"), "9");
  EXPECT_EQ(response.headers.at("x-prompt-tokens"), "5");
  EXPECT_EQ(response.headers.at("x-generated-tokens"), "3");
  EXPECT_EQ(response.headers.at("x-compute-type"), "cpu");
  for (const char* name : {"x-compute-time", "x-total-time", "x-validation-time", "x-queue-time",
                           "x-inference-time", "x-time-per-token"}) {
    EXPECT_TRUE(response.headers.contains(name)) << name;
  }
}

TEST_F(TgiTest, PrefillAndTopTokens) {
  engine_.script = [](const GenerationRequest& request) {
    EXPECT_TRUE(request.logprobs.prompt_logprobs);
    EXPECT_EQ(request.logprobs.top_n, 2U);
    EXPECT_EQ(request.logprobs.kind, LogprobRequest::Kind::kProcessed);
    auto events = Events({"a"}, FinishReason::kLength, 0, false);
    std::get<GenerationStart>(events[0]).prompt = {{9, "<s>", std::nullopt, true},
                                                   {8, "x", -0.5f, false}};
    std::get<GenerationToken>(events[1]).top = {{1, "a", -0.25f, false}, {2, "b", -1.25f, false}};
    return events;
  };
  const RawResponse response =
      Post("/generate",
           R"({"inputs":"x","parameters":{"decoder_input_details":true,"top_n_tokens":2}})");
  EXPECT_EQ(response.body,
            R"({"generated_text":"a","details":{"finish_reason":"length","generated_tokens":1,)"
            R"("seed":null,"prefill":[{"id":9,"text":"<s>","logprob":null},)"
            R"({"id":8,"text":"x","logprob":-0.5}],)"
            R"("tokens":[{"id":1,"text":"a","logprob":-0.25,"special":false}],)"
            R"("top_tokens":[[{"id":1,"text":"a","logprob":-0.25,"special":false},)"
            R"({"id":2,"text":"b","logprob":-1.25,"special":false}]]}})");
}

TEST_F(TgiTest, StreamEventsAsTgiWritesThem) {
  AnswerWith({" Hello", "</s>"}, FinishReason::kEos);
  const RawResponse response =
      Post("/generate_stream",
           R"({"inputs":"Hello","parameters":{"details":true,"do_sample":true,"seed":11}})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
  EXPECT_EQ(response.headers.at("cache-control"), "no-cache");
  EXPECT_EQ(response.headers.at("x-accel-buffering"), "no");
  EXPECT_TRUE(response.complete);
  EXPECT_EQ(response.body,
            "data: {\"index\":1,\"token\":{\"id\":1,\"text\":\" Hello\",\"logprob\":-0.25,"
            "\"special\":false},\"generated_text\":null,\"details\":null}\n\n"
            "data: {\"index\":2,\"token\":{\"id\":2,\"text\":\"</s>\",\"logprob\":-0.5,"
            "\"special\":true},\"generated_text\":\" "
            "Hello\",\"details\":{\"finish_reason\":\"eos_token\","
            "\"generated_tokens\":2,\"seed\":11,\"input_length\":5}}\n\n");
}

TEST_F(TgiTest, ATokenIsSentAtOnceAndNotWhenTheNextOneComes) {
  Start();
  testing::RawClient client(port_);
  client.Send(testing::Post("/generate_stream", R"({"inputs":"a"})"));
  auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  call->Send({GenerationStart{}});
  EXPECT_EQ(client.ReadHead().status, 200);
  ASSERT_TRUE(call->Send({TokenEvent(0, 5, "x", -1)}));
  EXPECT_THAT(client.ReadChunk().value_or(""), HasSubstr("\"text\":\"x\""));
  // The end on its own still carries a token, because TGI's clients read one.
  GenerationEnd end;
  end.text = "x";
  call->Send({end});
  EXPECT_THAT(client.ReadChunk().value_or(""),
              HasSubstr("\"index\":2,\"token\":{\"id\":0,\"text\":\"\",\"logprob\":null,"
                        "\"special\":true},\"generated_text\":\"x\""));
  EXPECT_EQ(client.ReadChunk(), std::nullopt);
}

TEST_F(TgiTest, RootTakesStreamFromTheBodyAndGivesTheFullTextInAnArray) {
  AnswerWith({" big"}, FinishReason::kStopString);
  EXPECT_EQ(Post("/", R"({"inputs":"Hello"})").body, R"([{"generated_text":"Hello big"}])");
  EXPECT_EQ(Post("/", R"({"inputs":"Hello","parameters":{"return_full_text":false}})").body,
            R"([{"generated_text":" big"}])");
  EXPECT_THAT(Post("/", R"({"inputs":"Hello","stream":true})").body,
              HasSubstr("\"generated_text\":\"Hello big\""));
  EXPECT_EQ(Post("/generate", R"({"inputs":"Hello","parameters":{"return_full_text":true}})").body,
            R"({"generated_text":"Hello big"})");
}

TEST_F(TgiTest, ParametersReachTheEngine) {
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(
      Post("/generate", R"({"inputs":"p","parameters":{"temperature":0.5,"top_k":3,"top_p":0.9,
                  "typical_p":0.8,"repetition_penalty":1.5,"frequency_penalty":-0.5,
                  "max_new_tokens":9,"truncate":4,"stop":["x","y"],"seed":18446744073709551615,
                  "details":true}})",
           "X-Request-Id: abc\r\n")
          .status,
      200);
  const auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  const GenerationRequest& r = call->request;
  EXPECT_EQ(std::get<std::string>(r.prompt), "p");
  EXPECT_EQ(r.client_id, "abc");
  EXPECT_TRUE(r.sampling.do_sample);
  EXPECT_EQ(r.sampling.temperature, 0.5f);
  EXPECT_EQ(r.sampling.top_k, 3U);
  EXPECT_EQ(r.sampling.top_p, 0.9f);
  EXPECT_EQ(r.sampling.typical_p, 0.8f);
  EXPECT_EQ(r.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(r.sampling.frequency_penalty, -0.5f);
  EXPECT_EQ(r.max_new_tokens, 9U);
  EXPECT_EQ(r.truncate, 4U);
  EXPECT_EQ(r.stop, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(r.seed, 18446744073709551615U);
  EXPECT_EQ(r.stop_rule, StopRule::kTokenEnd);
  EXPECT_TRUE(r.add_special_tokens);
}

// TGI: sampling when `parameters` is absent or any warper is given, else greedy.
TEST_F(TgiTest, WhenARequestSamples) {
  AnswerWith({"a"}, FinishReason::kLength);
  const std::vector<std::pair<std::string, bool>> cases = {
      {R"({"inputs":"p"})", true},
      {R"({"inputs":"p","parameters":{}})", false},
      {R"({"inputs":"p","parameters":[]})", false},
      {R"({"inputs":"p","parameters":{"temperature":1.0}})", false},
      {R"({"inputs":"p","parameters":{"temperature":0.7}})", true},
      {R"({"inputs":"p","parameters":{"top_p":0.7}})", true},
      {R"({"inputs":"p","parameters":{"do_sample":true}})", true},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(Post("/generate", cases[i].first).status, 200) << cases[i].first;
    EXPECT_EQ(engine_.WaitForCall(i)->request.sampling.do_sample, cases[i].second)
        << cases[i].first;
  }
}

TEST_F(TgiTest, BestOfGivesTheLikeliestAndTheOthers) {
  engine_.script = [](const GenerationRequest& request) {
    auto events = Events({request.sampling.sibling == 1 ? "best" : "other"}, FinishReason::kLength,
                         request.sampling.sibling, true);
    std::get<GenerationToken>(events[1]).token.logprob =
        request.sampling.sibling == 1 ? -0.1f : -0.9f;
    return events;
  };
  const RawResponse response = Post(
      "/generate", R"({"inputs":"x","parameters":{"best_of":2,"do_sample":true,"details":true}})");
  EXPECT_EQ(response.body,
            R"({"generated_text":"best","details":{"finish_reason":"length","generated_tokens":1,)"
            R"("seed":1,"prefill":[],)"
            R"("tokens":[{"id":1,"text":"best","logprob":-0.1,"special":false}],)"
            R"("best_of_sequences":[{"generated_text":"other","finish_reason":"length",)"
            R"("generated_tokens":1,"seed":0,"prefill":[],)"
            R"("tokens":[{"id":1,"text":"other","logprob":-0.9,"special":false}]}]}})");
}

TEST_F(TgiTest, AFailedCandidateEndsTheRequestAndCancelsTheOther) {
  Start();
  testing::RawClient client(port_);
  client.Send(
      testing::Post("/generate", R"({"inputs":"x","parameters":{"best_of":2,"do_sample":true}})"));
  auto first = engine_.WaitForCall(0);
  auto second = engine_.WaitForCall(1);
  ASSERT_TRUE(first && second);
  first->Send({GenerationError{ErrorKind::kGeneration, "boom", "", {}}});
  const RawResponse response = client.ReadResponse();
  EXPECT_EQ(response.status, 424);
  EXPECT_EQ(
      response.body,
      R"({"error":"Request failed during generation: Server error: boom","error_type":"generation"})");
  EXPECT_TRUE(engine_.WaitForCancel(second->id));
  EXPECT_FALSE(second->Send({GenerationStart{}}));
}

TEST_F(TgiTest, ErrorsOfTheEngineBeforeAndInAStream) {
  FailWith({ErrorKind::kValidation, "`inputs` must have less than 128 tokens. Given: 200", "inputs",
            LengthExceeded{200, 0, 128}});
  const RawResponse plain = Post("/generate", R"({"inputs":"a"})");
  EXPECT_EQ(plain.status, 422);
  EXPECT_EQ(plain.body,
            R"({"error":"Input validation error: `inputs` must have less than 128 tokens. )"
            R"(Given: 200","error_type":"validation"})");
  const RawResponse stream = Post("/generate_stream", R"({"inputs":"a"})");
  EXPECT_EQ(stream.status, 200);
  EXPECT_EQ(stream.body, "data: " + plain.body + "\n\n");
  EXPECT_TRUE(stream.complete);
}

TEST_F(TgiTest, AnErrorInTheMiddleOfAStreamIsOneEvent) {
  engine_.script = [](const GenerationRequest&) {
    auto events = Events({"a", "b"}, FinishReason::kLength, 0, false);
    events.back() = GenerationError{ErrorKind::kGeneration, "rank 1 was lost", "", {}};
    return events;
  };
  const RawResponse response = Post("/generate_stream", R"({"inputs":"a"})");
  EXPECT_TRUE(response.body.ends_with(
      "\"generated_text\":null,\"details\":null}\n\n"
      "data: {\"error\":\"Request failed during generation: Server error: rank 1 was lost\","
      "\"error_type\":\"generation\"}\n\n"))
      << response.body;
}

TEST_F(TgiTest, WithoutAPermitAnInvalidRequestIsOverloadedButAMalformedOneIsNot) {
  api_.max_concurrent_requests = 1;
  Start();
  testing::RawClient holder(port_);
  holder.Send(testing::Post("/generate", R"({"inputs":"a"})"));
  auto call = engine_.WaitForCall();
  ASSERT_TRUE(call);
  const RawResponse plain = Post("/generate", R"({"inputs":"a","parameters":{"top_k":0}})");
  EXPECT_EQ(plain.status, 429);
  EXPECT_EQ(plain.headers.at("retry-after"), "1");
  EXPECT_EQ(plain.headers.at("x-should-retry"), "true");
  EXPECT_EQ(plain.body, R"({"error":"Model is overloaded","error_type":"overloaded"})");
  EXPECT_EQ(Post("/generate_stream", R"({"inputs":"a"})").body, "data: " + plain.body + "\n\n");
  EXPECT_EQ(Post("/generate", "{").status, 400);
  EXPECT_EQ(Post("/generate", R"({"inputs":"a","parameters":{"best_of":9}})").status, 422);
  call->Send(Events({"a"}, FinishReason::kLength, 0, false));
  EXPECT_EQ(holder.ReadResponse().status, 200);
  AnswerWith({"a"}, FinishReason::kLength);
  EXPECT_EQ(Post("/generate", R"({"inputs":"a"})").status, 200);  // the permit came back
}

TEST_F(TgiTest, UnsupportedParametersAreRefusedByName) {
  for (const auto& [parameter, message] : std::vector<std::pair<std::string, std::string>>{
           {R"("watermark":true)", "`watermark` is not supported"},
           {R"("adapter_id":"x")", "`adapter_id` is not supported"}}) {
    const RawResponse response =
        Post("/generate", R"({"inputs":"a","parameters":{)" + parameter + "}}");
    EXPECT_EQ(response.status, 422);
    EXPECT_THAT(response.body, HasSubstr(message));
  }
  EXPECT_EQ(engine_.calls(), 0U);
}

TEST_F(TgiTest, InfoHasTgisKeysInTgisOrder) {
  const RawResponse response = Get("/info");
  EXPECT_THAT(response.body,
              ::testing::StartsWith(
                  R"({"model_id":"org/demo","model_sha":null,"model_pipeline_tag":null,)"
                  R"("max_concurrent_requests":128,"max_best_of":2,"max_stop_sequences":4,)"
                  R"("max_input_tokens":128,"max_total_tokens":256,"validation_workers":2,)"
                  R"("max_client_batch_size":4,"router":)"));
  EXPECT_TRUE(boost::json::parse(response.body).is_object());
}

TEST_F(TgiTest, InfoSaysHowWeightsAreQuantized) {
  EXPECT_THAT(Get("/info").body, HasSubstr(R"("quantize":null)"));
  engine_.facts.backend = "cpu/avx512";
  EXPECT_THAT(Get("/info").body, HasSubstr(R"("quantize":null)"));
  engine_.facts.backend = "cpu/avx512/int8";
  EXPECT_THAT(Get("/info").body,
              HasSubstr(R"("model_backend":"cpu/avx512/int8","quantize":"int8")"));
  engine_.facts.backend = "cpu/avx2/int4/kv-int8";
  EXPECT_THAT(Get("/info").body, HasSubstr(R"("quantize":"int4")"));
  engine_.facts.backend = "cuda/fp8/kv-fp8_e4m3fn";
  EXPECT_THAT(Get("/info").body, HasSubstr(R"("quantize":"fp8")"));
  engine_.facts.backend = "cuda/kv-fp8_e4m3fn";
  EXPECT_THAT(Get("/info").body, HasSubstr(R"("quantize":null)"));
}

TEST_F(TgiTest, TextIsEscapedAndUnicodeKept) {
  AnswerWith({"\"\n\xf0\x9f\x98\x80"}, FinishReason::kLength);
  EXPECT_EQ(Post("/generate", R"({"inputs":"a"})").body,
            "{\"generated_text\":\"\\\"\\n\xf0\x9f\x98\x80\"}");
}

}  // namespace
}  // namespace penstock::router
