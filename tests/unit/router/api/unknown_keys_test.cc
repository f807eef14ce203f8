// Keys of a body that no dialect knows: counted, named in the answer, or refused.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawResponse;

using UnknownKeysTest = ApiTest;

TEST_F(UnknownKeysTest, AnAnswerNamesTheUnknownKeysOfItsRequest) {
  AnswerWith({"a"}, FinishReason::kLength);
  const auto ignored = [this](std::string_view path, std::string_view body) {
    const RawResponse response = Post(path, body);
    EXPECT_EQ(response.status, 200) << response.body;
    return response.headers.at("x-penstock-ignored");
  };
  EXPECT_EQ(ignored("/v1/completions", R"({"prompt":"a","temprature":1,"a b,ü":2,"temprature":3})"),
            "temprature,a%20b%2C%C3%BC");
  EXPECT_EQ(ignored("/generate", R"({"inputs":"a","parameters":{"max_tokens":1}})"),
            "parameters.max_tokens");
  EXPECT_EQ(ignored("/generate_stream", R"({"inputs":"a","x":1})"), "x");
  EXPECT_EQ(ignored("/invocations", R"({"inputs":"a","x":1})"), "x");
  EXPECT_EQ(ignored("/invocations", R"({"inputs":["a"],"x":1})"), "x");
  EXPECT_EQ(ignored("/vertex", R"({"instances":[{"inputs":"a","x":1}],"y":2})"), "x,y");
  EXPECT_EQ(ignored("/predictions/demo", R"({"inputs":"a","x":1})"), "x");
  EXPECT_EQ(ignored("/inference", R"({"prompt":"a","num_tokens":1,"x":1})"), "x");
  EXPECT_EQ(Post("/generate", R"({"inputs":"a"})").headers.count("x-penstock-ignored"), 0u);
}

// The key that is missing is often the one that was misspelt.
TEST_F(UnknownKeysTest, TheAnswerToABadBodyNamesItsUnknownKeys) {
  const auto ignored = [this](std::string_view path, std::string_view body, int status) {
    const RawResponse response = Post(path, body);
    EXPECT_EQ(response.status, status) << response.body;
    const auto found = response.headers.find("x-penstock-ignored");
    return found == response.headers.end() ? "" : found->second;
  };
  EXPECT_EQ(ignored("/inference", R"({"promt":"a","num_tokens":1})", 422), "promt");
  EXPECT_EQ(ignored("/inference", R"({"prompt":"a","num_tokens":0,"x":1})", 422), "x");
  EXPECT_EQ(ignored("/inference", R"({"x":1,"prompt":"a","num_tokens":"2","y":1})", 422), "x,y");
  EXPECT_EQ(ignored("/generate", R"({"inputs":1,"x":1})", 422), "x");
  EXPECT_EQ(ignored("/v1/chat/completions", R"({"messages":1,"x":1})", 400), "x");
  EXPECT_EQ(ignored("/v1/messages", R"({"max_tokens":"1","x":[{"y":1}]})", 400), "x");
  EXPECT_EQ(ignored("/v1/completions", R"({"prompt":"a","seed":"1","x":{)", 400), "x");
  EXPECT_EQ(ignored("/generate", R"({"input":"a"})", 422), "input");
  EXPECT_EQ(ignored("/v1/completions", R"({"promt":"a"})", 400), "promt");
  EXPECT_EQ(ignored("/inference", R"({"num_tokens":1})", 422), "");
}

TEST_F(UnknownKeysTest, TheNamesOfUnknownKeysAreBounded) {
  AnswerWith({"a"}, FinishReason::kLength);
  std::string few = R"({"inputs":"a")";
  std::string long_names = few;
  for (char c = 'a'; c < 'm'; ++c) {
    few.append(",\"").append(1, c).append("\":1");
    long_names.append(",\"").append(1, c).append(99, 'x').append("\":1");
  }
  EXPECT_EQ(Post("/generate", few + "}").headers.at("x-penstock-ignored"), "a,b,c,d,e,f,g,h,i,j");
  EXPECT_EQ(Post("/generate", long_names + "}").headers.at("x-penstock-ignored").size(), 504u);
  const std::string one = R"({"inputs":"a",")" + std::string(4000, 'a') + R"(":1})";
  EXPECT_EQ(Post("/generate", one).headers.at("x-penstock-ignored").size(), 100u);
}

TEST_F(UnknownKeysTest, StrictJsonRefusesAnUnknownKeyAndNamesTheNearest) {
  api_.strict_json = true;
  AnswerWith({"a"}, FinishReason::kLength);
  const RawResponse chat = Post("/v1/chat/completions", R"({"messages":[],"temprature":1})");
  EXPECT_EQ(chat.status, 400);
  EXPECT_EQ(chat.body,
            R"({"error":{"message":"`temprature` is not a key that this server knows. Nearest: )"
            R"(`temperature`","type":"invalid_request_error","param":"temprature",)"
            R"("code":"unknown_parameter"}})");
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {"/generate", R"({"inputs":"a","parameters":{"max_new_token":1}})"},
           {"/generate_stream", R"({"inputs":"a","parameters":{"max_new_token":1}})"},
           {"/invocations", R"({"inputs":"a","parameters":{"max_new_token":1}})"},
           {"/vertex", R"({"instances":[{"inputs":"a","parameters":{"max_new_token":1}}]})"},
           {"/predictions/demo", R"({"inputs":"a","parameters":{"max_new_token":1}})"}}) {
    const RawResponse response = Post(path, body);
    EXPECT_EQ(response.status, 400) << path;
    EXPECT_THAT(response.body, HasSubstr("Nearest: `max_new_tokens`")) << path;
  }
  EXPECT_THAT(Post("/generate", R"({"inputs":"a","zzz":1})").body, Not(HasSubstr("Nearest")));
  EXPECT_EQ(Post("/generate", R"({"inputs":"a"})").status, 200);
}

}  // namespace
}  // namespace penstock::router
