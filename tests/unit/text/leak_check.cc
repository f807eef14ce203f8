// Uses every function of the text library many times and frees everything. Under the asan preset
// (ctest -L asan) it fails if a single byte leaks.
#include <cstdio>
#include <string>

#include "tests/unit/text/tiny_tokenizer.h"
#include "text/chat_template.h"
#include "text/incremental_decoder.h"
#include "text/tokenizer.h"

namespace penstock::text {
namespace {

bool UseTokenizer(const std::string& folder) {
  const auto tokenizer = Tokenizer::Load(folder);
  if (!tokenizer.ok()) return false;
  const Tokenizer& t = **tokenizer;
  const std::string text = "the hero 😀 says hé</s>";
  const auto ids = t.Encode(text, true);
  if (!ids.ok() || !t.EncodeWithOffsets(text, true).ok() || t.Encode("\xff", true).ok()) {
    return false;
  }
  if (t.Decode(*ids, false).value().empty()) return false;
  t.Token(5);
  t.Token(1 << 20);
  auto decoder = IncrementalDecoder::Create(t, true, *ids);
  if (!decoder.ok()) return false;
  for (const TokenId id : *ids) {
    if (!decoder->Push(id).ok()) return false;
  }
  return decoder->Finish().ok();
}

bool UseTemplate() {
  if (ChatTemplate::Compile("{% if %}", "{}").ok()) return false;
  const auto compiled = ChatTemplate::Compile(
      "{% macro m(x) %}{{ x }}{% endmacro %}{% for i in messages %}{{ m(i) }}{% endfor %}"
      "{{ tools | tojson }}{% if fail %}{{ raise_exception('no') }}{% endif %}",
      R"({"bos_token": "<s>"})");
  if (!compiled.ok()) return false;
  Conversation conversation;
  conversation.messages_json = R"([{"role": "user", "content": "x"}, {"a": [1, 2.5, null]}])";
  conversation.tools_json = R"([{"type": "function"}])";
  if (!(*compiled)->Render(conversation).ok()) return false;
  conversation.kwargs_json = R"({"fail": true})";
  if ((*compiled)->Render(conversation).ok()) return false;
  conversation.messages_json = "{";
  return !(*compiled)->Render(conversation).ok();
}

int Run() {
  const TempFolder bytes, pieces, broken;
  bytes.Write("tokenizer.json", ByteLevelJson());
  pieces.Write("tokenizer.json", SentencePieceJson());
  broken.Write("tokenizer.json", "{");
  for (int round = 0; round < 50; ++round) {
    if (!UseTokenizer(bytes.path()) || !UseTokenizer(pieces.path()) ||
        UseTokenizer(broken.path()) || !UseTemplate()) {
      std::fputs("the text library failed\n", stderr);
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace penstock::text

int main() { return penstock::text::Run(); }
