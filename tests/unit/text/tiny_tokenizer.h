// Two tokenizers small enough to write down: byte-level BPE and SentencePiece with byte fallback.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "tests/unit/support/temp_folder.h"

namespace penstock::text {

// GPT-2's spelling of byte `b` as UTF-8 inside a JSON string.
inline std::string SpellByte(int b) {
  const bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
  int code = b;
  if (!printable) code = b <= 0x20 ? 0x100 + b : (b == 0xad ? 0x143 : 0x121 + b - 0x7f);
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", code);
  return text.data();
}

// Id of byte b is b; "he" is 256, " t" is 257, the special "<s>" 258 and "</s>" 259.
inline std::string ByteLevelJson() {
  std::string vocabulary;
  for (int b = 0; b < 256; ++b) {
    vocabulary += "\"" + SpellByte(b) + "\":" + std::to_string(b) + ",";
  }
  const std::string space = SpellByte(' ');
  vocabulary += "\"he\":256,\"" + space + "t\":257";
  const auto special = [](std::string_view text, int id) {
    return R"({"id":)" + std::to_string(id) + R"(,"content":")" + std::string(text) +
           R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,)" +
           R"("special":true})";
  };
  return R"({"version":"1.0","truncation":{"direction":"Right","max_length":4,)"
         R"("strategy":"LongestFirst","stride":0},"padding":null,"added_tokens":[)" +
         special("<s>", 258) + "," + special("</s>", 259) +
         R"(],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
         R"("trim_offsets":false,"use_regex":true},"post_processor":{"type":"TemplateProcessing",)"
         R"("single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A",)"
         R"("type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},{"Sequence":{"id":"B",)"
         R"("type_id":1}}],"special_tokens":{"<s>":{"id":"<s>","ids":[258],"tokens":["<s>"]}}},)"
         R"("decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,)"
         R"("use_regex":true},"model":{"type":"BPE","dropout":null,"unk_token":null,)"
         R"("continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":false,)"
         R"("byte_fallback":false,"ignore_merges":false,"vocab":{)" +
         vocabulary + R"(},"merges":["h e",")" + space + R"( t"]}})";
}

// Ids 0 to 2 are <unk>, <s>, </s>; byte b is 3 + b; then "▁", "a", "▁a", "你".
inline std::string SentencePieceJson() {
  std::string vocabulary = R"("<unk>":0,"<s>":1,"</s>":2)";
  for (int b = 0; b < 256; ++b) {
    std::array<char, 8> token{};
    std::snprintf(token.data(), token.size(), "<0x%02X>", b);
    vocabulary += ",\"" + std::string(token.data()) + "\":" + std::to_string(3 + b);
  }
  vocabulary += ",\"▁\":259,\"a\":260,\"▁a\":261,\"你\":262";
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":1,)"
         R"("content":"<s>","single_word":false,"lstrip":false,"rstrip":false,)"
         R"("normalized":false,"special":true}],"normalizer":{"type":"Sequence","normalizers":[)"
         R"({"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},)"
         R"("content":"▁"}]},"pre_tokenizer":null,"post_processor":null,"decoder":{)"
         R"("type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},)"
         R"("content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip",)"
         R"("content":" ","start":1,"stop":0}]},"model":{"type":"BPE","dropout":null,)"
         R"("unk_token":"<unk>","continuing_subword_prefix":null,"end_of_word_suffix":null,)"
         R"("fuse_unk":true,"byte_fallback":true,"ignore_merges":false,"vocab":{)" +
         vocabulary + R"(},"merges":["▁ a"]}})";
}

}  // namespace penstock::text
