// OpenAI's errors name OpenAI's keys, and each of OpenAI's keys is known.
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using boost::json::value;
using ::testing::HasSubstr;
using ::testing::Not;

class OpenAiErrorsTest : public ApiTest {
 protected:
  value Error(std::string_view path, std::string_view body) {
    return boost::json::parse(Post(path, body).body).at("error");
  }
  value ChatError(std::string_view more) { return Error("/v1/chat/completions", Chat(more)); }
  static std::string Chat(std::string_view more) {
    return R"({"messages":[{"role":"user","content":"a"}],)" + std::string(more) + "}";
  }
};

TEST_F(OpenAiErrorsTest, AWrongGrammarIsOneOfResponseFormat) {
  engine_.facts.has_grammar = true;
  FailWith({ErrorKind::kValidation, "grammar is not valid: unclosed group", "grammar", {}});
  const value error = ChatError(R"("response_format":{"type":"json_object"})");
  EXPECT_EQ(error.at("param"), "response_format");
  EXPECT_EQ(error.at("message"), "`response_format` is not valid: unclosed group");
  EXPECT_THAT(Post("/generate", R"({"inputs":"a"})").body,
              HasSubstr("Input validation error: grammar is not valid: unclosed group"));
}

TEST_F(OpenAiErrorsTest, TheEnginesErrorsNameTheKeysOfTheRoute) {
  FailWith({ErrorKind::kValidation, "`inputs` cannot be empty", "inputs", {}});
  EXPECT_EQ(ChatError(R"("n":1)").at("message"), "`messages` cannot be empty");
  EXPECT_EQ(ChatError(R"("n":1)").at("param"), "messages");
  const value completion = Error("/v1/completions", R"({"prompt":"a"})");
  EXPECT_EQ(completion.at("message"), "`prompt` cannot be empty");
  EXPECT_EQ(completion.at("param"), "prompt");
  EXPECT_THAT(Post("/inference", R"({"prompt":"a","num_tokens":3})").body,
              HasSubstr("`prompt` cannot be empty"));
  FailWith({ErrorKind::kValidation, "`max_new_tokens` is too small", "max_new_tokens", {}});
  EXPECT_EQ(ChatError(R"("max_completion_tokens":1)").at("message"),
            "`max_completion_tokens` is too small");
  EXPECT_EQ(ChatError(R"("max_tokens":1)").at("param"), "max_tokens");
  EXPECT_THAT(Post("/inference", R"({"prompt":"a","num_tokens":3})").body,
              HasSubstr("`num_tokens` is too small"));
}

}  // namespace
}  // namespace penstock::router
