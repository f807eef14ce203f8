// The grammars of calls: what they allow a model to write, in tokenizers where the markers are
// special tokens and where they are texts.
#include "router/answer/grammar/call_grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/router/answer/docs_examples.h"
#include "tests/unit/router/answer/read_answer.h"
#include "tests/unit/support/temp_folder.h"
#include "tests/unit/text/tiny_tokenizer.h"
#include "text/grammar.h"

namespace penstock::router::answer {
namespace {

constexpr TokenId kEnd = 259;

// Special tokens of real models.
constexpr std::string_view kSpecial[] = {"<|python_tag|>",
                                         "<|python_start|>",
                                         "[TOOL_CALLS]",
                                         "[ARGS]",
                                         "<|channel|>",
                                         "<|message|>",
                                         "<|start|>",
                                         "<|end|>",
                                         "<|constrain|>",
                                         "<|tool_call|>",
                                         "<|/tool_call|>",
                                         "<｜tool▁calls▁begin｜>",
                                         "<｜tool▁call▁begin｜>",
                                         "<｜tool▁sep｜>",
                                         "<｜tool▁call▁end｜>",
                                         "<｜tool▁calls▁end｜>",
                                         "<|tool_calls_section_begin|>",
                                         "<|tool_call_begin|>",
                                         "<|tool_call_argument_begin|>",
                                         "<|tool_call_end|>",
                                         "<|tool_calls_section_end|>",
                                         "<|tool_call>",
                                         "<tool_call|>",
                                         "<|\\\"|>",
                                         "<start_function_call>",
                                         "<end_function_call>",
                                         "<escape>",
                                         "<arg_key>",
                                         "</arg_key>",
                                         "<arg_value>",
                                         "</arg_value>",
                                         "<tool_call>",
                                         "</tool_call>"};

constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"get_weather","strict":true,"parameters":{
    "type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"},
    "unit":{"type":"string","enum":["C","F"]}},"required":["city"],
    "additionalProperties":false}}},
    {"type":"function","function":{"name":"get","parameters":{"type":"object",
    "properties":{"days":{"type":"integer"}},"required":["days"]}}}])";

// The byte-level tokenizer with further special tokens.
std::string TokenizerJson(bool special) {
  std::string json = text::ByteLevelJson();
  if (!special) return json;
  std::string added;
  int id = kEnd;
  for (const std::string_view token : kSpecial) {
    added += R"(,{"id":)" + std::to_string(++id) + R"(,"content":")" + std::string(token) +
             R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)"
             R"("special":true})";
  }
  return json.insert(json.find(R"(],"normalizer")"), added);
}

class CallGrammarTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    folder_.Write("tokenizer.json", TokenizerJson(GetParam()));
    tokenizer_ = text::Tokenizer::Load(folder_.path()).value();
    const std::uint32_t rows = tokenizer_->vocabulary();
    vocabulary_ =
        text::Vocabulary::Create(*tokenizer_, rows, {&kEnd, 1}, text::Vocabulary::Tables::kPlain)
            .value();
    mask_.resize(text::MaskWords(rows));
    for (std::uint32_t id = kEnd + 1; id < rows; ++id) {
      special_.push_back({*tokenizer_->Token(static_cast<TokenId>(id)), static_cast<TokenId>(id)});
    }
  }

  std::shared_ptr<const text::CompiledGrammar> Compile(const std::string& lark) {
    auto grammar = vocabulary_->Compile({GrammarSpec::Kind::kLark, lark}, {});
    EXPECT_TRUE(grammar.ok()) << grammar.status() << "\n" << lark;
    return grammar.ok() ? *grammar : nullptr;
  }

  // The part of `text` that the grammar takes: all of it only if the output may end there.
  std::string Taken(const std::string& lark, const std::string& text) {
    const auto grammar = Compile(lark);
    if (grammar == nullptr) return "(no grammar)";
    const auto matcher = grammar->Start().value();
    std::vector<TokenId> taken;
    const std::vector<TokenId> ids = tokenizer_->Encode(text, false).value();
    for (const TokenId token : ids) {
      if (!matcher->Mask(mask_).ok()) return "(no mask)";
      if (((mask_[token / 32] >> (token % 32)) & 1) == 0) break;
      if (!matcher->Accept({&token, 1}).ok()) break;
      taken.push_back(token);
    }
    std::string out = tokenizer_->Decode(taken, false).value();
    if (out == text && !matcher->Where()->accepting) out += " (more must come)";
    return out;
  }

  static std::vector<const Format*> CallingFormats() {
    std::vector<const Format*> formats;
    for (const Format* format : Formats()) {
      if (format->header != nullptr) formats.push_back(format);
    }
    return formats;
  }

  // The example of the page as the form of the format: without what may stand before it.
  static std::string Example(const Format& format) {
    std::string text = testing::ExampleOf(testing::ReadFile("docs/tools.md"), format.name);
    if (format.name == "gpt_oss") text.erase(0, text.find("<|channel|>commentary"));
    if (format.name == "gpt_oss") text.erase(text.find("<|call|>"));
    return text;
  }

  static std::string Replaced(std::string text, std::string_view from, std::string_view to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << text;
    return at == text.npos ? text : text.replace(at, from.size(), to);
  }

  const std::shared_ptr<const ToolSet> tools_ =
      std::make_shared<const ToolSet>(ParseTools(kTools).value());
  TempFolder folder_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::shared_ptr<const text::Vocabulary> vocabulary_;
  std::vector<std::uint32_t> mask_;
  SpecialTokens special_;
};

TEST_P(CallGrammarTest, ARequiredCallIsWhatTheScannerReads) {
  for (const Format* format : CallingFormats()) {
    const std::string lark = RequiredCallGrammar(*format, *tools_, special_, true);
    const std::string call = Example(*format);
    EXPECT_EQ(Taken(lark, call), call) << format->name << "\n" << lark;
    const Answer answer = testing::ReadAnswer(format->name, call, tools_);
    EXPECT_EQ(answer.calls, (std::vector<Call>{{"get_weather", "{\"city\": \"Paris\"}"}}))
        << format->name;
  }
}

TEST_P(CallGrammarTest, RequiredCallsHaveNoOtherNamesParametersOrText) {
  for (const Format* format : CallingFormats()) {
    const std::string lark = RequiredCallGrammar(*format, *tools_, special_, true);
    const std::string call = Example(*format);
    for (const std::string& wrong :
         {"I " + call, Replaced(call, "get_weather", "get_wether"), Replaced(call, "city", "town"),
          call.substr(0, call.find("city"))}) {
      EXPECT_NE(Taken(lark, wrong), wrong) << format->name << "\n" << lark;
    }
  }
}

TEST_P(CallGrammarTest, OtherToolsHaveTheirOwnSchema) {
  for (const Format* format : CallingFormats()) {
    const std::string lark = RequiredCallGrammar(*format, *tools_, special_, true);
    std::string call = Replaced(Example(*format), "get_weather", "get");
    EXPECT_NE(Taken(lark, call), call) << format->name;
    call = Replaced(Replaced(call, "city", "days"), "Paris", "7");
    for (const std::string_view quote : {"\"7\"", "<|\"|>7<|\"|>", "<escape>7<escape>"}) {
      if (call.find(quote) != call.npos) call = Replaced(call, quote, "7");
    }
    if (format->name == "deepseek_v32") call = Replaced(call, "\"true\"", "\"false\"");
    EXPECT_EQ(Taken(lark, call), call) << format->name << "\n" << lark;
    const std::string text = Replaced(call, "7", "x");
    EXPECT_NE(Taken(lark, text), text) << format->name;
  }
}

TEST_P(CallGrammarTest, OneCallIsAllWithoutParallelCalls) {
  const Format& hermes = *FindFormat("hermes");
  const std::string call = Example(hermes);
  const std::string two = call + "\n" + call;
  EXPECT_EQ(Taken(RequiredCallGrammar(hermes, *tools_, special_, true), two), two);
  EXPECT_EQ(Taken(RequiredCallGrammar(hermes, *tools_, special_, false), two), call);
}

TEST_P(CallGrammarTest, StrictCallsStandInAnyText) {
  for (const Format* format : CallingFormats()) {
    const std::string lark = StrictCallGrammar(*format, *tools_, special_);
    const std::string call = Example(*format);
    const std::string text = format->name == "gpt_oss" ? "" : "I look {now} [a] <b>.\n";
    EXPECT_EQ(Taken(lark, text + call), text + call) << format->name << "\n" << lark;
    EXPECT_EQ(Taken(lark, text + "No."), text + "No.") << format->name << "\n" << lark;
  }
}

TEST_P(CallGrammarTest, StrictCallsFollowTheirSchemaWhereverTheyBegin) {
  for (const Format* format : CallingFormats()) {
    const std::string lark = StrictCallGrammar(*format, *tools_, special_);
    const std::string wrong = "I look.\n" + Replaced(Example(*format), "city", "town");
    EXPECT_NE(Taken(lark, wrong), wrong) << format->name << "\n" << lark;
  }
}

TEST_P(CallGrammarTest, ToolsThatAreNotStrictTakeAnyArguments) {
  for (const Format* format : CallingFormats()) {
    const std::string lark = StrictCallGrammar(*format, *tools_, special_);
    const std::string call = Replaced(Example(*format), "get_weather", "get");
    EXPECT_EQ(Taken(lark, call), call) << format->name << "\n" << lark;
  }
}

TEST_P(CallGrammarTest, TextsOfAnEnumAndSeveralArguments) {
  const Format& coder = *FindFormat("qwen3_coder");
  const std::string lark = RequiredCallGrammar(coder, *tools_, special_, true);
  const std::string call = Replaced(
      Example(coder), "</parameter>\n",
      "</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=unit>\nC\n</parameter>\n");
  EXPECT_EQ(Taken(lark, call), call) << lark;
  const std::string wrong = Replaced(call, "\nC\n", "\nK\n");
  EXPECT_NE(Taken(lark, wrong), wrong);
  const Format& llama = *FindFormat("llama4_pythonic");
  const std::string python = RequiredCallGrammar(llama, *tools_, special_, true);
  const std::string two = R"([get_weather(city="a", unit="F"), get(days=2)])";
  EXPECT_EQ(Taken(python, two), two) << python;
}

INSTANTIATE_TEST_SUITE_P(Markers, CallGrammarTest, ::testing::Bool(),
                         [](const auto& special) { return special.param ? "special" : "texts"; });

}  // namespace
}  // namespace penstock::router::answer
