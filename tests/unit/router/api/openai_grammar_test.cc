// The forms of grammars that bodies give, enforced with the text library.
#include <boost/json/serialize.hpp>
#include <boost/json/value_to.hpp>

#include "router/api/openai/gbnf.h"
#include "router/api/openai/grammar_forms.h"
#include "tests/unit/router/api/api_fixture.h"
#include "tests/unit/text/tiny_tokenizer.h"
#include "text/grammar.h"

namespace penstock::router {
namespace {

using boost::json::value;
using openai::GrammarOrError;
using ::testing::HasSubstr;
using testing::RawResponse;

constexpr TokenId kEnd = 259;

class OpenAiGrammarTest : public ApiTest {
 protected:
  OpenAiGrammarTest() {
    engine_.facts.has_grammar = true;
    folder_.Write("tokenizer.json", text::ByteLevelJson());
    tokenizer_ = text::Tokenizer::Load(folder_.path()).value();
    vocabulary_ =
        text::Vocabulary::Create(*tokenizer_, 260, {&kEnd, 1}, text::Vocabulary::Tables::kPlain)
            .value();
  }

  static std::string Quoted(const std::string& text) { return boost::json::serialize(value(text)); }
  static GrammarSpec SpecOf(GrammarOrError form) {
    if (auto* error = std::get_if<ApiError>(&form)) {
      ADD_FAILURE() << error->message;
      return {};
    }
    auto written = std::get<Grammar>(form).write();
    if (auto* why = std::get_if<std::string>(&written)) ADD_FAILURE() << *why;
    return std::get<GrammarSpec>(written);
  }
  static GrammarSpec Gbnf(const std::string& source) {
    return SpecOf(openai::TextGrammar("guided_grammar", Quoted(source)));
  }
  static std::string GbnfProblem(const std::string& source) {
    auto written = std::get<Grammar>(openai::TextGrammar("guided_grammar", Quoted(source))).write();
    return std::holds_alternative<std::string>(written) ? std::get<std::string>(written) : "";
  }

  // Whether an output of this text, byte by byte, may be whole.
  bool Accepts(const GrammarSpec& spec, const std::string& output) {
    const auto grammar = vocabulary_->Compile(spec, {});
    if (!grammar.ok()) {
      ADD_FAILURE() << grammar.status() << "\n" << spec.source;
      return false;
    }
    auto matcher = (*grammar)->Start().value();
    std::vector<std::uint32_t> mask(text::MaskWords(260));
    const auto allows = [&](TokenId token) {
      EXPECT_TRUE(matcher->Mask(mask).ok());
      const auto bit = static_cast<std::uint32_t>(token);
      return ((mask[bit / 32] >> (bit % 32)) & 1) != 0;
    };
    for (const char c : output) {
      const auto token = static_cast<TokenId>(static_cast<unsigned char>(c));
      if (!allows(token) || !matcher->Accept({&token, 1}).ok()) return false;
    }
    return allows(kEnd);
  }

  TempFolder folder_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::shared_ptr<const text::Vocabulary> vocabulary_;
};

TEST_F(OpenAiGrammarTest, AChoiceIsOneOfItsStrings) {
  const GrammarSpec spec =
      SpecOf(openai::ChoiceGrammar("guided_choice", R"(["yes","no \"so\"","a\nb"])"));
  EXPECT_TRUE(Accepts(spec, "yes"));
  EXPECT_TRUE(Accepts(spec, "no \"so\""));
  EXPECT_TRUE(Accepts(spec, "a\nb"));
  EXPECT_FALSE(Accepts(spec, "ye"));
  EXPECT_FALSE(Accepts(spec, "yesno"));
}

// GBNF knows no lexemes: "end" may also be letters.
TEST_F(OpenAiGrammarTest, ARegularGbnfMatchesWithoutLexemes) {
  const GrammarSpec spec = Gbnf("root ::= word \"end\" # comment\nword ::= [a-z]+\n");
  EXPECT_TRUE(Accepts(spec, "xend"));
  EXPECT_TRUE(Accepts(spec, "endend"));
  EXPECT_FALSE(Accepts(spec, "end"));
  EXPECT_FALSE(Accepts(spec, "endx"));
}

TEST_F(OpenAiGrammarTest, GbnfHasBoundsClassesEscapesAndGroups) {
  const GrammarSpec spec = Gbnf(
      "root ::= \"\\x41\\n\" [^0-9\\]/]{2} (\"b\" | \"c\"\n \"d\")?\n  tail*\n"
      "tail ::= [-+] . | \"\\u00e4\" {1,2}");
  EXPECT_TRUE(Accepts(spec, "A\nxy"));
  EXPECT_TRUE(Accepts(spec, "A\nx cd+/"));
  EXPECT_TRUE(Accepts(spec, "A\nxyb-\n\xc3\xa4\xc3\xa4"));
  EXPECT_FALSE(Accepts(spec, "A\nx"));
  EXPECT_FALSE(Accepts(spec, "A\nx]"));
  EXPECT_FALSE(Accepts(spec, "A\nxyc"));
}

TEST_F(OpenAiGrammarTest, ARecursiveGbnfIsFollowed) {
  const GrammarSpec spec = Gbnf(
      "root ::= value\n"
      "value ::= list | number | string\n"
      "list ::= \"[\" ws ( value ( \",\" ws value )* )? \"]\" ws\n"
      "number ::= \"-\"? [0-9]+ ws\n"
      "string ::= \"\\\"\" ( [^\"\\\\] | \"\\\\\" [\"n] )* \"\\\"\" ws\n"
      "ws ::= [ \\n]*\n");
  EXPECT_TRUE(Accepts(spec, "[]"));
  EXPECT_TRUE(Accepts(spec, "[1, [ -2,\n[]], \"a\\\"]\" ] "));
  EXPECT_FALSE(Accepts(spec, "[1"));
  EXPECT_FALSE(Accepts(spec, "[1,]"));
}

TEST_F(OpenAiGrammarTest, ABrokenGbnfIsExplained) {
  EXPECT_THAT(GbnfProblem("a ::= \"b\""), HasSubstr("the rule `root` is not defined"));
  EXPECT_THAT(GbnfProblem("root ::= b"), HasSubstr("the rule `b` is not defined"));
  EXPECT_THAT(GbnfProblem("root ::= \"b"), HasSubstr("in the rule `root`: a `\"` is not closed"));
  EXPECT_THAT(GbnfProblem("root ::= (\"b\""), HasSubstr("a `(` is not closed"));
  EXPECT_THAT(GbnfProblem("root ::= [z-a]"), HasSubstr("reversed"));
  EXPECT_THAT(GbnfProblem("root ::= \"a\"\nroot ::= \"b\""), HasSubstr("defined twice"));
  EXPECT_THAT(GbnfProblem("root ::= " + std::string(100, '(')), HasSubstr("nested groups"));
}

TEST_F(OpenAiGrammarTest, ALarkGrammarIsTakenAsItIs) {
  const GrammarSpec spec =
      SpecOf(openai::TextGrammar("guided_grammar", Quoted("start: \"a\" B\nB: /[0-9]{2}/")));
  EXPECT_TRUE(Accepts(spec, "a12"));
  EXPECT_FALSE(Accepts(spec, "a1"));
}

TEST_F(OpenAiGrammarTest, AStructureFollowsItsTriggerAndTextIsFree) {
  const GrammarSpec spec =
      SpecOf(openai::TagGrammar("response_format",
                                R"({"type":"structural_tag","triggers":["<f="],"structures":[
          {"begin":"<f=a>","schema":{"type":"integer"},"end":"</f>"},
          {"begin":"<f=b>","schema":{"type":"boolean"},"end":"</f>"}]})"));
  EXPECT_TRUE(Accepts(spec, ""));
  EXPECT_TRUE(Accepts(spec, "text < f=a> {}"));
  EXPECT_TRUE(Accepts(spec, "say <f=a>12</f>"));
  EXPECT_TRUE(Accepts(spec, "<f=b>true</f> and <f=a>7</f> end <f"));
  EXPECT_FALSE(Accepts(spec, "say <f=a>true</f>"));
  EXPECT_FALSE(Accepts(spec, "say <f=c>1</f>"));
  EXPECT_FALSE(Accepts(spec, "say <f=a>1"));
}

TEST_F(OpenAiGrammarTest, AWrongStructuralTagIsNamed) {
  const auto message = [](const char* text) {
    const GrammarOrError form = openai::TagGrammar("response_format", text);
    return std::get<ApiError>(form).message;
  };
  EXPECT_THAT(message(R"({"structures":[],"triggers":[]})"), HasSubstr("triggers"));
  EXPECT_THAT(message(R"({"structures":[{"begin":"<a>","end":""}],"triggers":["<b"]})"),
              HasSubstr("\"<b\""));
  EXPECT_THAT(message(R"({"triggers":["<b"]})"), HasSubstr("\"<b\""));
  EXPECT_THAT(message(R"({"structures":[{"begin":"<b"}],"triggers":["<b"]})"),
              HasSubstr("missing field `end`"));
}

TEST_F(OpenAiGrammarTest, EveryKeyOfAGrammarIsUnderstood) {
  const std::vector<std::pair<std::string, GrammarSpec::Kind>> cases = {
      {R"("guided_json":{"type":"integer"})", GrammarSpec::Kind::kJsonSchema},
      {R"("guided_json":"{\"type\":\"integer\"}")", GrammarSpec::Kind::kJsonSchema},
      {R"("guided_regex":"a+")", GrammarSpec::Kind::kRegex},
      {R"("guided_choice":["a"])", GrammarSpec::Kind::kLark},
      {R"("guided_grammar":"root ::= \"a\"")", GrammarSpec::Kind::kLark},
      {R"("structured_outputs":{"json":{"type":"integer"},"regex":null})",
       GrammarSpec::Kind::kJsonSchema},
      {R"("structured_outputs":{"json_object":true})", GrammarSpec::Kind::kJsonSchema},
      {R"("structured_outputs":{"choice":["a"]})", GrammarSpec::Kind::kLark},
      {R"("structured_outputs":{"structural_tag":"{\"structures\":[{\"begin\":\"<a>\",\"end\":\"\"}],)"
       R"(\"triggers\":[\"<a\"]}"})",
       GrammarSpec::Kind::kLark},
      {R"("response_format":{"type":"grammar","grammar":"start: \"a\""})",
       GrammarSpec::Kind::kLark},
  };
  AnswerWith({"a"}, FinishReason::kEos);
  std::size_t call = 0;
  for (const auto& [keys, kind] : cases) {
    ASSERT_EQ(Post("/v1/completions", R"({"prompt":"a",)" + keys + "}").status, 200) << keys;
    const GenerationRequest request = engine_.WaitForCall(call++)->request;
    ASSERT_TRUE(request.grammar) << keys;
    EXPECT_EQ(std::get<GrammarSpec>(request.grammar.write()).kind, kind) << keys;
  }
}

TEST_F(OpenAiGrammarTest, TwoGrammarsAndWrongOnesAreNamed) {
  const RawResponse two =
      Post("/v1/completions", R"({"prompt":"a","guided_regex":"a","guided_choice":["a"]})");
  EXPECT_EQ(two.status, 400);
  EXPECT_THAT(two.body, HasSubstr("`guided_choice` must be absent beside another grammar"));
  const RawResponse wrong =
      Post("/v1/completions", R"({"prompt":"a","structured_outputs":{"choice":[]}})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.body, HasSubstr("`structured_outputs.choice` must be an array"));

  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("response_format":{"type":"grammar"})", "`response_format.grammar` is missing"},
      {R"("response_format":{"type":"grammar","grammar":""})",
       "`response_format.grammar` must be a string that is not empty. Given: "},
      {R"("guided_grammar":"")", "`guided_grammar` must be a string that is not empty"},
      {R"("guided_json":"")", "`guided_json` must be a string that is not empty"},
      {R"("structured_outputs":{"grammar":""})",
       "`structured_outputs.grammar` must be a string that is not empty"},
      {R"("response_format":{"type":"structural_tag","triggers":["<a"],"structures":[{"begin":5}]})",
       "`response_format.structures[0].begin` must be a string. Given: integer `5`"},
      {R"("structured_outputs":{"json_object":1})",
       "`structured_outputs.json_object` must be a boolean. Given: integer `1`"},
      {R"("structured_outputs":{"chioce":["a"]})", "`structured_outputs` must have one of json, "},
  };
  for (const auto& [keys, message] : cases) {
    const RawResponse response = Post("/v1/completions", R"({"prompt":"a",)" + keys + "}");
    EXPECT_EQ(response.status, 400) << keys;
    EXPECT_THAT(response.body, HasSubstr(message)) << keys;
  }
}

TEST_F(OpenAiGrammarTest, UnknownKeysInAGrammarAreNamed) {
  AnswerWith({"a"}, FinishReason::kEos);
  const RawResponse response =
      Post("/v1/completions",
           R"({"prompt":"a","response_format":{"type":"structural_tag","triggers":["<a"],)"
           R"("structures":[{"begin":"<a>","end":"","strickt":true}]}})");
  ASSERT_EQ(response.status, 200);
  EXPECT_THAT(response.headers.at("x-penstock-ignored"),
              HasSubstr("response_format.structures%5B0%5D.strickt"));
  const RawResponse other = Post(
      "/v1/completions", R"({"prompt":"a","structured_outputs":{"choice":["a"],"chioce":["b"]}})");
  EXPECT_EQ(other.headers.at("x-penstock-ignored"), "structured_outputs.chioce");
}

}  // namespace
}  // namespace penstock::router
