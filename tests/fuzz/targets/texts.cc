// Readers of text/: chat templates, tokenizer.json and grammars.
#include <algorithm>
#include <array>
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "common/fnv.h"
#include "router/api/openai/gbnf.h"
#include "router/api/tgi/grammar/schema_regex.h"
#include "tests/fuzz/target.h"
#include "tests/unit/support/temp_folder.h"
#include "tests/unit/text/tiny_tokenizer.h"
#include "text/chat_template.h"
#include "text/grammar.h"
#include "text/incremental_decoder.h"
#include "text/tokenizer.h"

namespace penstock::fuzz {
namespace {

constexpr std::string_view kMessages = R"([{"role": "user", "content": "Hello"}])";
constexpr TokenId kEos = 259;
constexpr std::uint32_t kRows = 260;
constexpr std::string_view kText = "the hero 😀 says hé  </s><s>\n\t42";

void CheckError(const absl::Status& status) {
  if (status.ok()) return;
  Require(!absl::IsInternal(status), "no panic inside the text library");
  Require(status.message().find('\n') == status.message().npos, "an error is one line");
}

std::string_view Or(std::string_view text, std::string_view absent) {
  return text.empty() ? absent : text;
}

const text::Tokenizer& TinyTokenizer() {
  static const auto* const tokenizer = [] {
    const TempFolder folder;
    folder.Write("tokenizer.json", text::ByteLevelJson());
    return new std::shared_ptr<const text::Tokenizer>(*text::Tokenizer::Load(folder.path()));
  }();
  return **tokenizer;
}

const text::Vocabulary& TinyVocabulary() {
  static const auto* const vocabulary = [] {
    const std::array eos = {kEos};
    return new std::shared_ptr<const text::Vocabulary>(
        *text::Vocabulary::Create(TinyTokenizer(), kRows, eos, text::Vocabulary::Tables::kPlain));
  }();
  return **vocabulary;
}

void UseTokenizer(const text::Tokenizer& tokenizer) {
  const auto plain = tokenizer.EncodeWithOffsets(kText, true);
  CheckError(plain.status());
  CheckError(tokenizer.EncodePair("a b", "c", true, 4).status());
  if (!plain.ok()) return;
  for (const auto& [begin, end] : plain->offsets) {
    Require(begin <= end && end <= kText.size(), "a token lies in its text");
  }
  CheckError(tokenizer.Decode(plain->ids, false).status());
  auto decoder = text::IncrementalDecoder::Create(tokenizer, true, {});
  CheckError(decoder.status());
  if (!decoder.ok()) return;
  for (const TokenId id : plain->ids) {
    tokenizer.Token(id);
    tokenizer.FactsOf(id);
    CheckError(decoder->Push(id).status());
  }
  CheckError(decoder->Finish().status());
}

// Selects tokens of the masks for some steps.
void Walk(const text::CompiledGrammar& grammar, std::uint64_t choice) {
  auto matcher = grammar.Start();
  CheckError(matcher.status());
  if (!matcher.ok()) return;
  constexpr int kSteps = 6;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::uint32_t> mask(text::MaskWords(kRows));
    const absl::Status status = (*matcher)->Mask(mask);
    CheckError(status);
    if (!status.ok()) return;
    std::vector<TokenId> allowed;
    for (TokenId id = 0; id < static_cast<TokenId>(kRows); ++id) {
      const auto bit = static_cast<std::uint32_t>(id);
      if ((mask[bit / 32] >> (bit % 32) & 1) != 0) allowed.push_back(id);
    }
    Require(!allowed.empty(), "a mask allows a token");
    const TokenId chosen = allowed[choice % allowed.size()];
    choice = choice * 6364136223846793005u + 1442695040888963407u;
    if (chosen == kEos) return;
    const absl::Status accepted = (*matcher)->Accept(std::array{chosen});
    Require(accepted.ok(), "a token that the mask allows is accepted");
    CheckError((*matcher)->Where().status());
  }
}

// The grammar of an input: a line with its kind, then its source.
GrammarSpec ReadSpec(std::string_view bytes) {
  const std::string_view kind = TakeLine(bytes);
  if (kind == "gbnf") {
    auto lark = router::openai::LarkOfGbnf(bytes);
    if (!std::holds_alternative<std::string>(lark)) return {};
    return {GrammarSpec::Kind::kLark, std::get<std::string>(std::move(lark))};
  }
  if (kind == "tgi") {
    router::json::Reader reader(bytes);
    router::json::Value schema;
    if (!router::json::ReadValue(reader, schema, "a schema")) return {};
    auto regex = router::tgi::SchemaToRegex(schema);
    if (!regex.ok()) return {};
    return {GrammarSpec::Kind::kRegex, *std::move(regex)};
  }
  if (kind == "regex") return {GrammarSpec::Kind::kRegex, std::string(bytes)};
  if (kind == "lark") return {GrammarSpec::Kind::kLark, std::string(bytes)};
  return {GrammarSpec::Kind::kJsonSchema, std::string(bytes)};
}

}  // namespace

// Parts: the template, and optionally messages, tools and further variables.
void ReadChatTemplate(std::string_view bytes) {
  const auto parts = Parts(bytes);
  const auto compiled =
      text::ChatTemplate::Compile(parts[0], R"({"bos_token": "<s>", "eos_token": "</s>"})");
  CheckError(compiled.status());
  if (!compiled.ok()) return;
  text::Conversation conversation;
  conversation.messages_json = Or(PartOf(parts, 1), kMessages);
  conversation.tools_json = PartOf(parts, 2);
  conversation.kwargs_json = PartOf(parts, 3);
  conversation.now_seconds = 1'700'000'000;
  // Small bounds, which an input reaches.
  const text::TemplateLimits limits{1 << 16, 1 << 16, 20'000};
  const auto rendered = (*compiled)->Render(conversation, limits);
  CheckError(rendered.status());
  Require(!rendered.ok() || rendered->size() <= limits.output_bytes, "a prompt within its bound");
}

// Parts: tokenizer.json, and optionally tokenizer_config.json.
void ReadTokenizerJson(std::string_view bytes) {
  const auto parts = Parts(bytes);
  static const TempFolder folder;
  folder.Write("tokenizer.json", parts[0]);
  folder.Write("tokenizer_config.json", Or(PartOf(parts, 1), "{}"));
  const auto tokenizer = text::Tokenizer::Load(folder.path());
  CheckError(tokenizer.status());
  if (!tokenizer.ok()) return;
  UseTokenizer(**tokenizer);
  if ((*tokenizer)->vocabulary() > 100'000) return;  // a table of that size is not this reader's
  const std::array eos = {TokenId{0}};
  CheckError(text::Vocabulary::Create(**tokenizer, (*tokenizer)->vocabulary() + 1, eos,
                                      text::Vocabulary::Tables::kPlain)
                 .status());
}

void ReadGrammar(std::string_view bytes) {
  const GrammarSpec spec = ReadSpec(bytes);
  if (spec.empty()) return;
  const auto grammar =
      TinyVocabulary().Compile(spec, {1 << 14, 50'000, 20'000});  // small bounds again
  CheckError(grammar.status());
  if (grammar.ok()) Walk(**grammar, Fnv1a(bytes));
}

}  // namespace penstock::fuzz
