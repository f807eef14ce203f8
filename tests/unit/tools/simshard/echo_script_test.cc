#include "tools/simshard/echo_script.h"

#include <gtest/gtest.h>

#include "tests/unit/support/paths.h"

namespace penstock::simshard {
namespace {

EchoScript Read(const std::string& shown) {
  auto tokenizer = text::Tokenizer::Load(testing_support::SourcePath("demo/model"));
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  SequenceStart start;
  start.prompt = {1, 2, 3};
  start.trace_id = shown;
  EchoScript script = ReadEchoScript(start, **tokenizer);
  if (script.tokens) {
    EXPECT_EQ(*script.tokens, *(*tokenizer)->Encode("Hi there", false));
  }
  return script;
}

TEST(EchoScript, DirectivesAreReadFromTheShownText) {
  EXPECT_TRUE(Read(R"({"text":"a <<<Hi there>>> b"})").tokens.has_value());
  const EchoScript script = Read(R"({"text":"[[slow:80]] x [[loop]] [[fail:x]] [[fail:3]]"})");
  EXPECT_FALSE(script.tokens.has_value());
  EXPECT_TRUE(script.endless);
  EXPECT_EQ(script.fail_at, 3U);
  EXPECT_EQ(script.slow_ms, 80U);
}

TEST(EchoScript, APlainTraceIdHasNoDirectives) {
  for (const char* shown : {"", "request-7", "{", "[1]", R"({"text":5})", R"({"text":"plain"})"}) {
    const EchoScript script = Read(shown);
    EXPECT_FALSE(script.tokens || script.endless || script.fail_at || script.slow_ms) << shown;
  }
}

}  // namespace
}  // namespace penstock::simshard
