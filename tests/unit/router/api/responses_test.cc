// POST /v1/responses and the routes of stored responses.
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>
#include <set>

#include "router/answer/format.h"
#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawResponse;

constexpr std::string_view kTools =
    R"("tools":[{"type":"function","name":"get_weather","parameters":{"type":"object",
    "properties":{"city":{"type":"string"}}}},{"type":"function","name":"now"}])";

class ResponsesTest : public ApiTest {
 protected:
  ResponsesTest() { api_.answer_format = answer::FindFormat("hermes"); }

  static std::string Body(std::string_view input, std::string_view more = "") {
    return R"({"input":)" + std::string(input) + (more.empty() ? "" : ",") + std::string(more) +
           "}";
  }
  RawResponse Ask(std::string_view input, std::string_view more = "",
                  std::string_view headers = "X-Request-Id: r1\r\n") {
    return Post("/v1/responses", Body(input, more), headers);
  }
  value Created(std::string_view input, std::string_view more = "") {
    const RawResponse response = Ask(input, more);
    EXPECT_EQ(response.status, 200) << response.body;
    return boost::json::parse(response.body);
  }
  // The messages that the model's template gets for this input.
  std::string Messages(std::string_view input, std::string_view more = "") {
    AnswerWith({"x"}, FinishReason::kEos);
    const std::size_t call = engine_.calls();
    EXPECT_EQ(Ask(input, more).status, 200);
    const auto seen = engine_.WaitForCall(call);
    return seen ? std::get<ChatInput>(seen->request.prompt).messages_json : "";
  }
  // The message of a refusal.
  std::string Refusal(std::string_view input, std::string_view more = "") {
    const RawResponse response = Ask(input, more);
    EXPECT_EQ(response.status, 400) << response.body;
    const value error = boost::json::parse(response.body).at("error");
    return boost::json::value_to<std::string>(error.at("message"));
  }
  std::vector<value> Events(std::string_view more) {
    const RawResponse response = Ask(
        "\"hi\"", R"("stream":true)" + std::string(more.empty() ? "" : ",") + std::string(more));
    std::vector<value> events;
    for (std::size_t at = response.body.find("event: "); at != std::string::npos;
         at = response.body.find("event: ", at)) {
      const std::size_t line = response.body.find('\n', at);
      const std::size_t end = response.body.find("\n\n", at);
      const std::string name = response.body.substr(at + 7, line - at - 7);
      EXPECT_EQ(response.body.substr(line + 1, 6), "data: ");
      events.push_back(boost::json::parse(response.body.substr(line + 7, end - line - 7)));
      EXPECT_EQ(Text(events.back(), "type"), name);
      at = end;
    }
    return events;
  }
  // Reasoning, text and two calls, in tokens whose borders mean nothing.
  void AnswerWithAll(FinishReason reason = FinishReason::kEos) {
    AnswerWith(
        {"", " <think>", "Hm.", " </think>\n\n", "I ", "look.\n",
         " <tool_call>" + std::string("\n{\"name\": \"get_w"), "eather\", \"arguments\": {\"city\"",
         ": \"Par", "is\"}}\n", " </tool_call>", "\n<tool_call>{\"name\": \"now\"}</tool_call>"},
        reason);
  }
  static std::string Text(const value& object, std::string_view key) {
    return boost::json::value_to<std::string>(object.at(key));
  }
};

TEST_F(ResponsesTest, AnAnswerHasItsItemsInTheirOrder) {
  AnswerWithAll();
  const value response = Created("\"hi\"", kTools);
  EXPECT_EQ(response.at("object"), "response");
  EXPECT_EQ(response.at("status"), "completed");
  EXPECT_TRUE(response.at("incomplete_details").is_null());
  const auto& output = response.at("output").as_array();
  ASSERT_EQ(output.size(), 4u);
  EXPECT_EQ(output[0].at("content").at(0).at("text"), "Hm.");
  EXPECT_EQ(output[1].at("content").at(0).at("text"), "I look.");
  EXPECT_EQ(output[2].at("name"), "get_weather");
  EXPECT_EQ(output[2].at("arguments"), R"({"city": "Paris"})");
  EXPECT_EQ(output[3].at("arguments"), "{}");
  const std::string_view prefixes[] = {"rs_", "msg_", "fc_", "fc_"};
  std::set<std::string> ids;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(output[i].at("status"), "completed");
    const std::string id = Text(output[i], "id");
    EXPECT_TRUE(id.starts_with(prefixes[i])) << id;
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 4u);
  EXPECT_EQ(response.at("usage").at("input_tokens"), 5);
  EXPECT_EQ(response.at("usage").at("output_tokens"), 12);
  EXPECT_EQ(response.at("usage").at("output_tokens_details").at("reasoning_tokens"), 4);
}

TEST_F(ResponsesTest, AStreamGathersTheSameItems) {
  AnswerWithAll();
  const value plain = Created("\"hi\"", kTools);
  const auto events = Events(kTools);
  ASSERT_GT(events.size(), 10u);
  std::map<std::int64_t, std::string> gathered;
  std::vector<std::string> types;
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].at("sequence_number"), static_cast<std::int64_t>(i));
    const std::string type = Text(events[i], "type");
    if (type.ends_with(".delta")) {
      gathered[events[i].at("output_index").as_int64()] += Text(events[i], "delta");
    } else {
      types.push_back(type);
    }
  }
  EXPECT_THAT(types,
              ElementsAre("response.created", "response.in_progress", "response.output_item.added",
                          "response.content_part.added", "response.reasoning_text.done",
                          "response.content_part.done", "response.output_item.done",
                          "response.output_item.added", "response.content_part.added",
                          "response.output_text.done", "response.content_part.done",
                          "response.output_item.done", "response.output_item.added",
                          "response.function_call_arguments.done", "response.output_item.done",
                          "response.output_item.added", "response.function_call_arguments.done",
                          "response.output_item.done", "response.completed"));
  EXPECT_EQ(gathered[0], "Hm.");
  EXPECT_EQ(gathered[1], "I look.");
  EXPECT_EQ(gathered[2], R"({"city": "Paris"})");
  const value& end = events.back().at("response");
  EXPECT_EQ(end.at("id"), events.front().at("response").at("id"));
  EXPECT_EQ(end.at("output").as_array().size(), 4u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(end.at("output").at(i).at("content"), plain.at("output").at(i).at("content"));
  }
  std::vector<value> done;
  for (const value& event : events) {
    if (event.at("type") == "response.output_item.done") done.push_back(event.at("item"));
  }
  EXPECT_EQ(value(boost::json::array(done.begin(), done.end())), end.at("output"));
}

TEST_F(ResponsesTest, AnAnswerThatWasCutIsIncomplete) {
  AnswerWith({" <tool_call>{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Pa"},
             FinishReason::kLength);
  const value response = Created("\"hi\"", kTools);
  EXPECT_EQ(response.at("status"), "incomplete");
  EXPECT_EQ(response.at("incomplete_details").at("reason"), "max_output_tokens");
  EXPECT_EQ(response.at("output").at(0).at("status"), "incomplete");
  EXPECT_EQ(response.at("output").at(0).at("arguments"), R"({"city": "Pa)");
  EXPECT_EQ(Text(Events(kTools).back(), "type"), "response.incomplete");
}

TEST_F(ResponsesTest, AStreamThatFailsEndsWithTheError) {
  engine_.script = [](const GenerationRequest&) {
    return std::vector<GenerationEvent>{
        GenerationStart{}, testing::TokenEvent(0, 1, "x", -1),
        GenerationError{ErrorKind::kGeneration, "rank 1 was lost", "", {}}};
  };
  const auto events = Events("");
  ASSERT_GT(events.size(), 3u);
  EXPECT_EQ(events[events.size() - 2].at("message"), "rank 1 was lost");
  const value& last = events.back();
  EXPECT_EQ(last.at("type"), "response.failed");
  EXPECT_EQ(last.at("response").at("status"), "failed");
  EXPECT_EQ(last.at("response").at("error").at("code"), "server_error");
  const RawResponse plain = Ask("\"hi\"");
  EXPECT_EQ(plain.status, 500);
  EXPECT_THAT(plain.body, HasSubstr("rank 1 was lost"));
}

TEST_F(ResponsesTest, TheInputBecomesTheMessagesOfAChat) {
  EXPECT_EQ(Messages("\"hi\"", R"("instructions":"Be brief.")"),
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}])");
  EXPECT_EQ(Messages(R"([{"role":"user","content":[{"type":"input_text","text":"a"},
                        {"type":"input_text","text":"b"}]}])"),
            R"([{"role":"user","content":"ab"}])");
}

TEST_F(ResponsesTest, InstructionsAndFirstSystemMessagesAreOneMessage) {
  EXPECT_EQ(Messages(R"([{"role":"developer","content":"A"},{"role":"system","content":"B"},
                        {"role":"user","content":"C"},{"role":"developer","content":"D"}])",
                     R"("instructions":"I")"),
            R"([{"role":"system","content":"I\n\nA\n\nB"},{"role":"user","content":"C"},)"
            R"({"role":"system","content":"D"}])");
}

TEST_F(ResponsesTest, ATurnOfTheAssistantIsOneMessage) {
  EXPECT_EQ(Messages(R"([{"role":"user","content":"hi"},
        {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look."}]},
        {"type":"function_call","call_id":"c1","name":"now","arguments":"{}"},
        {"type":"function_call","call_id":"c2","name":"now","arguments":"{\"a\":1}"},
        {"type":"function_call_output","call_id":"c1","output":"12"},
        {"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"13"}]}])"),
            R"([{"role":"user","content":"hi"},)"
            R"({"role":"assistant","reasoning_content":"Hm.","content":"I look.","tool_calls":[)"
            R"({"id":"c1","type":"function","function":{"name":"now","arguments":{}}},)"
            R"({"id":"c2","type":"function","function":{"name":"now","arguments":{"a":1}}}]},)"
            R"({"role":"tool","tool_call_id":"c1","content":"12"},)"
            R"({"role":"tool","tool_call_id":"c2","content":"13"}])");
}

TEST_F(ResponsesTest, OpaqueReasoningComesBackAsReasoning) {
  AnswerWithAll();
  const value response =
      Created("\"hi\"", std::string(kTools) + R"(,"include":["reasoning.encrypted_content"])");
  const std::string opaque = Text(response.at("output").at(0), "encrypted_content");
  const std::string input =
      R"([{"role":"user","content":"a"},{"type":"reasoning","summary":[],"encrypted_content":")";
  EXPECT_THAT(Messages(input + opaque + R"("},{"role":"user","content":"b"}])"),
              HasSubstr(R"("reasoning_content":"Hm.")"));
  EXPECT_THAT(Messages(input + R"(gAAAAAB"},{"role":"user","content":"b"}])"),
              Not(HasSubstr("assistant")));
}

TEST_F(ResponsesTest, OnlyFunctionsAreToolsAndOthersAreNamed) {
  AnswerWith({"x"}, FinishReason::kEos);
  const RawResponse response = Ask(
      "\"hi\"",
      R"("tools":[{"type":"web_search"},{"type":"function","name":"f","strict":null,"description":"d"}])");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_THAT(response.headers.at("x-penstock-ignored"), HasSubstr("tools.web_search"));
  const auto call = engine_.WaitForCall(0);
  ASSERT_TRUE(call);
  EXPECT_EQ(std::get<ChatInput>(call->request.prompt).tools_json,
            R"([{"type":"function","function":{"name":"f","description":"d"}}])");
}

TEST_F(ResponsesTest, ErrorsNameTheKeysOfThisRoute) {
  EXPECT_THAT(Refusal("\"hi\"", R"("background":true)"), HasSubstr("`background`"));
  EXPECT_THAT(Refusal("\"hi\"", R"("conversation":"c")"), HasSubstr("`conversation`"));
  EXPECT_THAT(Refusal("\"hi\"", R"("max_output_tokens":0)"),
              HasSubstr("`max_output_tokens` must be at least 1. Given: 0"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("`input` must have at least one message"));
  EXPECT_THAT(Refusal("null"), HasSubstr("`input` is missing"));
  EXPECT_THAT(Refusal("5"), HasSubstr("`input` must be a string or an array of items"));
  EXPECT_THAT(Refusal(R"([{"type":"x"}])"), HasSubstr("input[0]: `type` must be message"));
  EXPECT_THAT(Refusal(R"([{"type":"function_call","name":"f"}])"),
              HasSubstr("`input[0].call_id` is missing"));
  EXPECT_THAT(Refusal(R"([{"role":"tool","content":"x"}])"), HasSubstr("`role` must be user"));
  EXPECT_THAT(Refusal(R"([{"role":"user","content":[{"type":"input_image"}]}])"),
              HasSubstr("input_text"));
  EXPECT_THAT(Refusal("\"hi\"", R"("tools":[{"type":"function"}])"),
              HasSubstr("`tools[0].name` is missing"));
  EXPECT_THAT(Refusal("\"hi\"", R"("tools":[{"type":"function","name":""}])"),
              HasSubstr("`name` must be a name that is not empty"));
  EXPECT_THAT(Refusal("\"hi\"", R"("reasoning":{"effort":"ultra"})"),
              HasSubstr("`reasoning.effort` must be none, minimal"));
  EXPECT_THAT(Refusal("\"hi\"", R"("text":{"format":{"type":"json_schema"}})"),
              HasSubstr("`text.format.schema` is missing"));
  EXPECT_THAT(Refusal("\"hi\"", R"("text":{"format":{"type":"xml"}})"),
              HasSubstr("`text.format.type` must be text"));
  EXPECT_THAT(Refusal("\"hi\"", R"("text":{"format":{"type":"json_object"}})"),
              HasSubstr("does not offer grammars"));
  EXPECT_EQ(engine_.calls(), 0u);
}

TEST_F(ResponsesTest, ALengthErrorNamesTheInput) {
  FailWith({ErrorKind::kValidation, "", "inputs", LengthExceeded{300, 0, 128, 256, false}});
  const RawResponse response = Ask("\"hi\"");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("maximum context length is 256 tokens"));
  EXPECT_THAT(response.body, HasSubstr(R"("param":"input")"));
}

TEST_F(ResponsesTest, LogprobsBelongToTheTokensOfTheText) {
  AnswerWithAll();
  const value response =
      Created("\"hi\"", std::string(kTools) + R"(,"include":["message.output_text.logprobs"])");
  const auto& logprobs = response.at("output").at(1).at("content").at(0).at("logprobs").as_array();
  ASSERT_EQ(logprobs.size(), 2u);
  EXPECT_EQ(logprobs[0].at("token"), "I ");
  EXPECT_EQ(logprobs[1].at("token"), "look.\n");
}

TEST_F(ResponsesTest, AStoredResponseIsReadAndDeleted) {
  AnswerWith({"Hello"}, FinishReason::kEos);
  const value response = Created("\"hi\"");
  const std::string path = "/v1/responses/" + Text(response, "id");
  EXPECT_EQ(boost::json::parse(Get(path).body), response);
  const value items = boost::json::parse(Get(path + "/input_items").body);
  EXPECT_EQ(items.at("data").at(0).at("content").at(0).at("text"), "hi");
  EXPECT_EQ(items.at("has_more"), false);
  const std::string request = "DELETE " + path + " HTTP/1.1\r\nHost: x\r\n\r\n";
  EXPECT_THAT(testing::RawClient::Fetch(port_, request).body, HasSubstr(R"("deleted":true)"));
  EXPECT_EQ(Get(path).status, 404);
  EXPECT_EQ(testing::RawClient::Fetch(port_, request).status, 404);
}

TEST_F(ResponsesTest, StoreFalseStoresNothing) {
  AnswerWith({"Hello"}, FinishReason::kEos);
  const value response = Created("\"hi\"", R"("store":false)");
  EXPECT_EQ(Get("/v1/responses/" + Text(response, "id")).status, 404);
}

TEST_F(ResponsesTest, APreviousResponseGoesBeforeTheInputWithoutItsInstructions) {
  AnswerWith({"Hello"}, FinishReason::kEos);
  const value first = Created("\"hi\"", R"("instructions":"Be brief.")");
  const std::string id = Text(first, "id");
  EXPECT_EQ(Messages("\"more\"", R"("previous_response_id":")" + id + "\""),
            R"([{"role":"user","content":"hi"},{"role":"assistant","content":"Hello"},)"
            R"({"role":"user","content":"more"}])");
}

TEST_F(ResponsesTest, AReferenceStandsForItsItem) {
  AnswerWith({"Hello"}, FinishReason::kEos);
  const std::string id = Text(Created("\"hi\"").at("output").at(0), "id");
  EXPECT_EQ(
      Messages(R"([{"type":"item_reference","id":")" + id + R"("},{"role":"user","content":"b"}])"),
      R"([{"role":"assistant","content":"Hello"},{"role":"user","content":"b"}])");
  EXPECT_EQ(Ask(R"([{"type":"item_reference","id":"msg_x-1"}])").status, 404);
}

TEST_F(ResponsesTest, WithoutAStoreAPreviousResponseIsNotFoundAndTheErrorSaysWhy) {
  dialects_.response_store.entries = 0;
  const RawResponse response = Ask("\"hi\"", R"("previous_response_id":"resp_1")");
  EXPECT_EQ(response.status, 404);
  EXPECT_THAT(response.body, HasSubstr("--response-store-entries 0"));
  EXPECT_THAT(response.body, HasSubstr(R"("param":"previous_response_id")"));
  AnswerWith({"Hello"}, FinishReason::kEos);
  EXPECT_EQ(Ask("\"hi\"", R"("store":true)").status, 200);
}

TEST_F(ResponsesTest, AResponseBelongsToTheKeyThatMadeIt) {
  api_.keys = std::make_shared<KeyRing>(*ApiKeys::Parse("", "alice:one\nbob:two\n", "keys"));
  AnswerWith({"Hello"}, FinishReason::kEos);
  const RawResponse made = Ask("\"hi\"", "", "Authorization: Bearer one\r\n");
  const std::string path = "/v1/responses/" + Text(boost::json::parse(made.body), "id");
  EXPECT_EQ(Get(path, "Authorization: Bearer one\r\n").status, 200);
  EXPECT_EQ(Get(path, "Authorization: Bearer two\r\n").status, 404);
  EXPECT_EQ(Get(path).status, 401);
  EXPECT_EQ(Post(path + "/cancel", "{}", "Authorization: Bearer two\r\n").status, 404);
}

// A response that runs until the test ends it.
class RunningResponseTest : public ResponsesTest {
 protected:
  void Begin(std::string_view more) {
    Start();
    client_ = std::make_unique<testing::RawClient>(port_);
    client_->Send(testing::Post("/v1/responses", Body("\"hi\"", more)));
    call_ = engine_.WaitForCall(0);
    ASSERT_TRUE(call_);
    call_->Send({GenerationStart{.request = call_->id}, testing::TokenEvent(0, 1, "Hel", -1)});
  }
  std::string ReadId() {
    const std::string text = client_->ReadUntil("\"object\"");
    const std::size_t at = text.find("resp_");
    return text.substr(at, text.find('"', at) - at);
  }

  std::unique_ptr<testing::RawClient> client_;
  std::optional<testing::FakeEngine::Call> call_;
};

TEST_F(RunningResponseTest, CancelEndsItWithWhatCameSoFar) {
  Begin(R"("stream":true)");
  const std::string path = "/v1/responses/" + ReadId();
  EXPECT_EQ(boost::json::parse(Get(path).body).at("status"), "in_progress");
  const RawResponse refused = Ask("\"hi\"", R"("previous_response_id":")" + path.substr(14) + "\"");
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("in progress"));
  const value cancelled = boost::json::parse(Post(path + "/cancel", "{}").body);
  EXPECT_EQ(cancelled.at("status"), "cancelled");
  EXPECT_EQ(cancelled.at("output").at(0).at("content").at(0).at("text"), "Hel");
  EXPECT_TRUE(engine_.WaitForCancel(call_->id));
  EXPECT_THAT(client_->ReadUntil("\n\r\n0\r\n"), HasSubstr(R"("status":"cancelled")"));
  EXPECT_EQ(boost::json::parse(Post(path + "/cancel", "{}").body), cancelled);
}

TEST_F(RunningResponseTest, AClientThatLeavesHasCancelledIt) {
  Begin(R"("stream":true)");
  const std::string path = "/v1/responses/" + ReadId();
  client_->Close();
  EXPECT_TRUE(engine_.WaitForCancel(call_->id));
  call_.reset();
  engine_.ForgetCalls();
  EXPECT_EQ(boost::json::parse(Get(path).body).at("status"), "cancelled");
}

}  // namespace
}  // namespace penstock::router
