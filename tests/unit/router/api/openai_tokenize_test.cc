// vLLM's routes about tokens, beside TGI's form of /tokenize.
#include <boost/json/serialize.hpp>

#include "tests/unit/router/api/api_fixture.h"

namespace penstock::router {
namespace {

using ::testing::HasSubstr;
using testing::RawResponse;

using TokenizeTest = ApiTest;

TEST_F(TokenizeTest, ATextHasItsTokensAndWhatFits) {
  const RawResponse response = Post("/tokenize", R"({"model":"demo","prompt":"ab"})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, R"({"count":2,"max_model_len":256,"tokens":[97,98],"token_strs":null})");
  EXPECT_TRUE(engine_.tokenize_options.add_special_tokens);
  EXPECT_EQ(Post("/tokenize", R"({"prompt":"","add_special_tokens":false})").body,
            R"({"count":0,"max_model_len":256,"tokens":[],"token_strs":null})");
  EXPECT_FALSE(engine_.tokenize_options.add_special_tokens);
}

TEST_F(TokenizeTest, TokensAreNamedWhenAskedFor) {
  EXPECT_THAT(Post("/tokenize", R"({"prompt":"ab","return_token_strs":true})").body,
              HasSubstr(R"("token_strs":["[a]","[b]"])"));
}

// The template writes the special tokens of a chat.
TEST_F(TokenizeTest, AChatIsRenderedFirst) {
  const std::string messages = R"([{"role":"user","content":"x"}])";
  const RawResponse response = Post("/tokenize", R"({"messages":)" + messages + "}");
  EXPECT_THAT(response.body, HasSubstr("\"count\":" + std::to_string(messages.size())));
  EXPECT_FALSE(engine_.tokenize_options.add_special_tokens);
  EXPECT_EQ(
      Post("/tokenize", R"({"messages":)" + messages + R"(,"chat_template_kwargs":1})").status,
      400);
}

TEST_F(TokenizeTest, TheKeysTellTheFormsApart) {
  const std::string own = R"([{"id":97,"text":"a","start":0,"stop":1}])";
  EXPECT_EQ(Post("/tokenize", R"({"inputs":"a"})").body, own);
  EXPECT_EQ(Post("/tokenize", R"({"inputs":"a","prompt":"b"})").body, own);
  EXPECT_EQ(Post("/tokenize", "{}").status, 422);  // TGI's
}

TEST_F(TokenizeTest, UnderTgisProfileOnlyItsFormIsKnown) {
  dialects_.tgi_only = true;
  EXPECT_EQ(Post("/tokenize", R"({"prompt":"a"})").status, 422);
  EXPECT_EQ(Post("/detokenize", R"({"tokens":[1]})").status, 404);
  EXPECT_EQ(Get("/version").status, 404);
}

TEST_F(TokenizeTest, TokensBecomeTheirText) {
  EXPECT_EQ(Post("/detokenize", R"({"tokens":[104,105]})").body, R"({"prompt":"hi"})");
  EXPECT_EQ(Post("/detokenize", R"({"tokens":[]})").body, R"({"prompt":""})");
}

TEST_F(TokenizeTest, WrongBodiesNameTheirKey) {
  for (const auto& [path, body, text] :
       {std::tuple("/detokenize", R"({"tokens":[1000]})",
                   "`tokens` must have token ids from 0 to 999. Given: 1000"),
        std::tuple("/detokenize", R"({})", "`tokens` is missing"),
        std::tuple("/detokenize", R"({"model":"other","tokens":[1]})", "`other` does not exist"),
        std::tuple("/tokenize", R"({"prompt":"a","messages":[{"role":"user","content":"b"}]})",
                   "`prompt` must be absent beside `messages`"),
        std::tuple("/tokenize", R"({"messages":[]})", "`messages` must have at least one message"),
        std::tuple("/tokenize",
                   R"({"messages":[{"role":"user","content":"b"}],"continue_final_message":true})",
                   "`continue_final_message` is not supported")}) {
    const RawResponse response = Post(path, body);
    EXPECT_THAT(response.body, HasSubstr(text));
    EXPECT_THAT(response.body, HasSubstr("\"error\":{\"message\""));
  }
}

TEST_F(TokenizeTest, TheVersionIsOpen) {
  api_.keys = std::make_shared<KeyRing>(ApiKeys::Parse("open-sesame").value());
  api_.version = "1.2.3";
  EXPECT_EQ(Get("/version").body, R"({"version":"1.2.3"})");
  EXPECT_EQ(Post("/detokenize", R"({"tokens":[1]})").status, 401);
}

}  // namespace
}  // namespace penstock::router
