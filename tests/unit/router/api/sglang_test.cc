// SGLang's interface in front of a fake engine.
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::parse;
using boost::json::serialize;
using boost::json::value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class SglangTest : public ApiTest {
 protected:
  value Answer(const std::string& body) {
    const auto response = Post("/generate", body);
    EXPECT_EQ(response.status, 200) << response.body;
    return parse(response.body);
  }
  GenerationRequest Asked(const std::string& body) {
    AnswerWith({"ok"}, FinishReason::kEos);
    Answer(body);
    return engine_.WaitForCall(engine_.calls() - 1)->request;
  }
  void ExpectRefusal(const std::string& body, std::string_view what, int status = 400) {
    const auto response = Post("/generate", body);
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_THAT(boost::json::value_to<std::string>(parse(response.body).at("error").at("message")),
                HasSubstr(what));
  }
  // Answers with two tokens after a prompt of three, with log-probabilities of all.
  void AnswerWithLogprobs() {
    engine_.script = [](const GenerationRequest&) {
      auto events = Events({"a", "b"}, FinishReason::kLength, 7, false);
      auto& start = std::get<GenerationStart>(events.front());
      start.prompt_tokens = 3;
      start.cached_tokens = 2;
      start.prompt = {{11, "x", std::nullopt}, {12, "y", -1.5f}, {13, "z", -2.0f}};
      start.prompt_alternatives = {{}, {2, {{20, "q", -0.5f}}}, {1, {{13, "z", -2.0f}}}};
      std::get<GenerationToken>(events[1]).top = {{1, "a", -0.25f}, {9, "c", -3.0f}};
      std::get<GenerationEnd>(events.back()).cached_tokens = 2;
      return events;
    };
  }
};

TEST_F(SglangTest, AnAnswerHasTextIdsAndCounts) {
  AnswerWith({"a", " b", "</s>"}, FinishReason::kEos);
  const value answer = Answer(R"({"text":"hi","rid":"mine","sampling_params":{"temperature":0}})");
  EXPECT_EQ(answer.at("text"), "a b");
  EXPECT_EQ(serialize(answer.at("output_ids")), "[1,2,3]");
  const value& meta = answer.at("meta_info");
  EXPECT_EQ(meta.at("id"), "mine");
  EXPECT_EQ(serialize(meta.at("finish_reason")), R"({"type":"stop","matched":3})");
  EXPECT_EQ(meta.at("prompt_tokens"), 5);
  EXPECT_EQ(meta.at("completion_tokens"), 3);
  EXPECT_EQ(meta.at("cached_tokens"), 0);
  EXPECT_TRUE(meta.at("e2e_latency").is_double());
  EXPECT_FALSE(meta.as_object().contains("input_token_logprobs"));
}

TEST_F(SglangTest, SamplingParametersReachTheEngine) {
  const auto request = Asked(
      R"({"text":"hi","sampling_params":{"max_new_tokens":9,"min_new_tokens":2,"temperature":0.5,
      "top_p":0.9,"top_k":40,"min_p":0.1,"frequency_penalty":0.2,"presence_penalty":0.3,
      "repetition_penalty":1.2,"stop":"\n","stop_token_ids":[4],"ignore_eos":true,
      "no_stop_trim":true,"sampling_seed":5,"logit_bias":{"3":1.5}}})");
  EXPECT_EQ(std::get<std::string>(request.prompt), "hi");
  EXPECT_EQ(request.max_new_tokens, 9u);
  EXPECT_TRUE(request.exact_length);
  EXPECT_EQ(request.min_new_tokens, 2u);
  EXPECT_TRUE(request.sampling.do_sample);
  EXPECT_FLOAT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_FLOAT_EQ(request.sampling.top_p, 0.9f);
  EXPECT_EQ(request.sampling.top_k, 40u);
  EXPECT_FLOAT_EQ(request.sampling.min_p, 0.1f);
  EXPECT_FLOAT_EQ(request.sampling.frequency_penalty, 0.2f);
  EXPECT_FLOAT_EQ(request.sampling.presence_penalty, 0.3f);
  EXPECT_FLOAT_EQ(request.sampling.repetition_penalty, 1.2f);
  EXPECT_THAT(request.stop, ElementsAre("\n"));
  EXPECT_THAT(request.stop_token_ids, ElementsAre(4));
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.stop_rule, StopRule::kShow);
  EXPECT_EQ(request.seed, 5u);
  ASSERT_EQ(request.sampling.logit_bias.size(), 1u);
  EXPECT_EQ(request.sampling.logit_bias.front().token, 3);
}

TEST_F(SglangTest, AnAbsentLengthIs128TokensOrWhatFits) {
  const auto request = Asked(R"({"text":"hi"})");
  EXPECT_EQ(request.max_new_tokens, 128u);
  EXPECT_FALSE(request.exact_length);
  EXPECT_TRUE(request.sampling.do_sample);
}

// The frontend sends these with each generation; empty values mean none.
TEST_F(SglangTest, WhatTheFrontendSendsByDefaultIsTaken) {
  const auto request = Asked(
      R"({"text":"hi","sampling_params":{"skip_special_tokens":true,
      "spaces_between_special_tokens":true,"max_new_tokens":128,"min_new_tokens":0,"n":1,"stop":[],
      "stop_token_ids":[],"stop_regex":[],"temperature":1.0,"top_p":1.0,"top_k":-1,"min_p":0.0,
      "frequency_penalty":0.0,"presence_penalty":0.0,"ignore_eos":false,"regex":null,
      "json_schema":null}})");
  EXPECT_EQ(request.sampling.top_k, 0u);
  EXPECT_FALSE(request.grammar);
}

TEST_F(SglangTest, ALengthOfZeroComputesThePromptAlone) {
  AnswerWith({"never shown"}, FinishReason::kLength);
  const value answer = Answer(R"({"text":"hi","sampling_params":{"max_new_tokens":0}})");
  EXPECT_EQ(answer.at("text"), "");
  EXPECT_EQ(serialize(answer.at("output_ids")), "[]");
  EXPECT_EQ(answer.at("meta_info").at("completion_tokens"), 0);
  EXPECT_EQ(serialize(answer.at("meta_info").at("finish_reason")),
            R"({"type":"length","length":0})");
  EXPECT_EQ(engine_.WaitForCall(0)->request.max_new_tokens, 1u);
}

TEST_F(SglangTest, LogprobsBeginAtTheirStartWithAnEntryThatHasNone) {
  AnswerWithLogprobs();
  const value answer = Answer(
      R"({"text":"xyz","return_logprob":true,"logprob_start_len":1,"top_logprobs_num":2,
      "return_text_in_logprobs":true,"sampling_params":{"max_new_tokens":2}})");
  const value& meta = answer.at("meta_info");
  EXPECT_EQ(meta.at("cached_tokens"), 2);
  EXPECT_EQ(meta.at("input_token_logprobs"), parse(R"([[null,12,"y"],[-2.0,13,"z"]])"));
  EXPECT_EQ(meta.at("input_top_logprobs"), parse(R"([null,[[-2.0,13,"z"]]])"));
  EXPECT_EQ(meta.at("output_token_logprobs"), parse(R"([[-0.25,1,"a"],[-0.5,2,"b"]])"));
  EXPECT_EQ(meta.at("output_top_logprobs"), parse(R"([[[-0.25,1,"a"],[-3.0,9,"c"]],null])"));
  const LogprobRequest asked = engine_.WaitForCall(0)->request.logprobs;
  EXPECT_EQ(asked.kind, LogprobRequest::Kind::kRaw);
  EXPECT_TRUE(asked.prompt_logprobs);
  EXPECT_EQ(asked.prompt_top_n, 2u);
}

TEST_F(SglangTest, WithoutAStartThePromptHasNoLogprobsAndTextsAreNull) {
  AnswerWithLogprobs();
  const value answer = Answer(R"({"text":"xyz","return_logprob":true})");
  EXPECT_EQ(answer.at("meta_info").at("input_token_logprobs"), parse("[]"));
  EXPECT_EQ(answer.at("meta_info").at("output_token_logprobs"),
            parse("[[-0.25,1,null],[-0.5,2,null]]"));
  EXPECT_FALSE(engine_.WaitForCall(0)->request.logprobs.prompt_logprobs);
}

TEST_F(SglangTest, AListIsAnsweredWithAListInItsOrder) {
  engine_.script = [](const GenerationRequest& request) {
    const auto* ids = std::get_if<std::vector<TokenId>>(&request.prompt);
    const bool first = ids != nullptr && ids->front() == 3;
    return Events({first ? "one" : "two"}, FinishReason::kLength, 7, false);
  };
  const value answers = Answer(
      R"({"input_ids":[[3,4],[5]],"rid":["p","q"],
      "sampling_params":[{"max_new_tokens":1},{"max_new_tokens":2}]})");
  ASSERT_EQ(answers.as_array().size(), 2u);
  EXPECT_EQ(answers.at(0).at("text"), "one");
  EXPECT_EQ(answers.at(1).at("text"), "two");
  EXPECT_EQ(answers.at(0).at("meta_info").at("id"), "p");
  EXPECT_EQ(answers.at(1).at("meta_info").at("id"), "q");
  EXPECT_EQ(Answer(R"({"text":["a"],"sampling_params":{"temperature":0}})").as_array().size(), 1u);
  EXPECT_TRUE(Answer(R"({"input_ids":[3]})").is_object());
}

// A select of the frontend has a prompt for each choice, so neither --max-client-batch-size nor
// --max-best-of bounds it.
TEST_F(SglangTest, ManyPromptsAndAnswersAreBoundedByTheRequestsOfTheServer) {
  AnswerWith({"ok"}, FinishReason::kEos);
  const value answers =
      Answer(R"({"text":["a","b","c","d","e","f"],"rid":"r","sampling_params":{"n":3}})");
  ASSERT_EQ(answers.as_array().size(), 18u);
  EXPECT_EQ(answers.at(17).at("meta_info").at("id"), "r_17");
  EXPECT_EQ(engine_.WaitForCall(17)->request.sampling.sibling, 2u);
  ExpectRefusal(R"({"text":"a","sampling_params":{"n":129}})",
                "at most 128 answers (--max-concurrent-requests). Given: 129");
}

TEST_F(SglangTest, EachEventHasTheWholeTextSoFar) {
  if (!service_) Start();
  testing::RawClient client(port_);
  client.Send(testing::Post("/generate", R"({"text":"hi","stream":true})"));
  const auto call = engine_.WaitForCall(0);
  auto events = Events({"a", "b"}, FinishReason::kLength, 7, false);
  for (auto& event : events) call->Send({event});
  const auto response = client.ReadResponse();
  EXPECT_EQ(response.headers.at("content-type"), "text/event-stream");
  EXPECT_THAT(response.body, HasSubstr(R"(data: {"text":"a","output_ids":[1],)"));
  EXPECT_THAT(response.body, HasSubstr(R"(data: {"text":"ab","output_ids":[1,2],)"));
  EXPECT_THAT(response.body, HasSubstr(R"("finish_reason":null)"));
  EXPECT_THAT(response.body, HasSubstr(R"("finish_reason":{"type":"length","length":2})"));
  EXPECT_TRUE(response.body.ends_with("data: [DONE]\n\n")) << response.body;
  EXPECT_THAT(response.body, Not(HasSubstr("\"index\"")));
}

TEST_F(SglangTest, EventsOfAListNameTheirResult) {
  AnswerWith({"a"}, FinishReason::kEos);
  const auto response = Post("/generate", R"({"text":["x","y"],"stream":true})");
  EXPECT_THAT(response.body, HasSubstr("\"index\":0}"));
  EXPECT_THAT(response.body, HasSubstr("\"index\":1}"));
}

TEST_F(SglangTest, GrammarsAreThoseOfTheOtherDialects) {
  engine_.facts.has_grammar = true;
  const auto spec = [this](const std::string& key, const std::string& grammar) {
    const auto request =
        Asked(R"({"text":"hi","sampling_params":{")" + key + "\":" + grammar + "}}");
    return std::get<GrammarSpec>(request.grammar.write());
  };
  EXPECT_EQ(spec("regex", R"("[a-z]+")").kind, GrammarSpec::Kind::kRegex);
  EXPECT_EQ(spec("json_schema", R"("{\"type\":\"object\"}")").source, R"({"type":"object"})");
  EXPECT_EQ(spec("ebnf", R"("root ::= \"a\"")").kind, GrammarSpec::Kind::kLark);
  EXPECT_FALSE(Asked(R"({"text":"hi","sampling_params":{"regex":""}})").grammar);
  ExpectRefusal(R"({"text":"hi","sampling_params":{"regex":"a","ebnf":"b"}})",
                "`sampling_params.ebnf` must be absent beside another grammar");
}

TEST_F(SglangTest, ErrorsNameTheKeyOfTheBody) {
  ExpectRefusal(R"({"text":"hi","sampling_params":{"top_p":2}})",
                "`sampling_params.top_p` must be from 0.0 to 1.0. Given: 2.0");
  ExpectRefusal(R"({"text":"hi","sampling_params":{"max_new_tokens":3,"min_new_tokens":4}})",
                "`sampling_params.min_new_tokens` must be at most "
                "`sampling_params.max_new_tokens`, 3. Given: 4");
  ExpectRefusal(R"({"text":["a","b"],"return_logprob":[true]})",
                "`return_logprob` must have a value for each of the 2 prompts. Given: 1");
  ExpectRefusal(R"({"input_ids":[1000]})", "`input_ids` must have token ids from 0 to 999");
  ExpectRefusal(R"({"input_ids":[]})", "`input_ids` must have at least one token");
  ExpectRefusal(R"({"text":[]})", "`text` must have at least one prompt");
  ExpectRefusal(R"({"text":"a","input_ids":[1]})", "`input_ids` must be absent beside `text`");
  ExpectRefusal(R"({"text":"a","image_data":"x"})", "`image_data` is not supported");
  ExpectRefusal(R"({"text":"a","sampling_params":{"stop_regex":"x"}})",
                "`sampling_params.stop_regex` is not supported");
  ExpectRefusal(R"({"text":"a","rid":"a b"})", "`rid` must be 1 to 128 of letters");
  ExpectRefusal(R"({"text":"a","lora_path":"other"})", "`other` does not exist", 404);
  FailWith({ErrorKind::kValidation, "grammar is not valid: no", "grammar", std::nullopt});
  engine_.facts.has_grammar = true;
  ExpectRefusal(R"({"text":"a","sampling_params":{"regex":"x"}})",
                "`sampling_params.regex` is not valid: no");
}

TEST_F(SglangTest, UnknownKeysAreNamedAndIgnored) {
  AnswerWith({"ok"}, FinishReason::kEos);
  const auto response = Post("/generate", R"({"text":"a","tekst":"b"})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.headers.at("x-penstock-ignored"), "tekst");
}

// The path is TGI's as well: a body with `inputs` is TGI's, also in its errors.
TEST_F(SglangTest, BodiesOfTgiStayWithTgi) {
  AnswerWith({"ok"}, FinishReason::kEos);
  EXPECT_THAT(Post("/generate", R"({"inputs":"hi","text":"x"})").body,
              HasSubstr("\"generated_text\":\"ok\""));
  EXPECT_THAT(Post("/generate", R"({"parameters":{}})").body, HasSubstr("missing field `inputs`"));
  EXPECT_THAT(Post("/generate", R"({"text":"hi"})").body, HasSubstr("\"meta_info\""));
}

TEST_F(SglangTest, TheTgiProfileHasNoneOfIt) {
  dialects_.tgi_only = true;
  EXPECT_EQ(Get("/get_model_info").status, 404);
  EXPECT_EQ(Post("/generate", R"({"text":"hi"})").status, 422);
}

TEST_F(SglangTest, TheServerDescribesItself) {
  for (const auto* path : {"/get_model_info", "/model_info"}) {
    const value info = parse(Get(path).body);
    EXPECT_EQ(info.at("model_path"), "org/demo");
    EXPECT_EQ(info.at("is_generation"), true);
  }
  for (const auto* path : {"/get_server_info", "/server_info"}) {
    const value info = parse(Get(path).body);
    EXPECT_EQ(info.at("context_length"), 256);
    EXPECT_EQ(info.at("internal_states").at(0).at("running"), 0);
  }
  EXPECT_EQ(Get("/health_generate").status, 200);
  engine_.SetHealth({Health::kFailed, "rank 0 was lost"});
  EXPECT_EQ(Get("/health_generate").status, 503);
}

TEST_F(SglangTest, TheFrontendsReportOfAppendedStatesIsAnswered) {
  const auto response =
      Post("/concate_and_append_request", R"({"src_rids":["a","b"],"dst_rid":"c"})");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(Post("/concate_and_append_request", R"({"src_rids":["a"]})").status, 400);
}

}  // namespace
}  // namespace penstock::router
