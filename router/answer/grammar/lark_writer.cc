#include "router/answer/grammar/lark_writer.h"

#include <cctype>

#include "router/json/writer.h"

namespace penstock::router::answer {

void AppendRegexOf(std::string& out, std::string_view text) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) != 0) {
      out += c;
      continue;
    }
    constexpr char kDigits[] = "0123456789abcdef";
    out.append("\\x").append({kDigits[byte >> 4], kDigits[byte & 15]});
  }
}

void LarkWriter::Rule(std::string_view name, std::string_view body) {
  rules_.append(name).append(": ").append(body).append("\n");
}

std::string LarkWriter::Rule(std::string_view body) {
  std::string name = Next('r');
  Rule(name, body);
  return name;
}

std::string LarkWriter::Terminal(std::string_view body) {
  std::string name = Next('T');
  Rule(name, body);
  return name;
}

std::string LarkWriter::LazyRule(std::string_view body) {
  std::string name = Next('r');
  Rule(name + "[lazy]", body);
  return name;
}

const SpecialToken* LarkWriter::SpecialAt(std::string_view text) const {
  const SpecialToken* longest = nullptr;
  for (const SpecialToken& token : special_) {
    if (!text.starts_with(token.text)) continue;
    if (longest == nullptr || token.text.size() > longest->text.size()) longest = &token;
  }
  return longest;
}

std::string LarkWriter::PartOf(const SpecialToken& token) {
  return "<[" + std::to_string(token.id) + "]>";
}

std::string LarkWriter::Literal(std::string_view text) const {
  std::string out, plain;
  const auto end_plain = [&] {
    if (plain.empty()) return;
    json::AppendString(out, plain);
    out += ' ';
    plain.clear();
  };
  while (!text.empty()) {
    const SpecialToken* token = SpecialAt(text);
    if (token == nullptr) {
      plain += text.front();
      text.remove_prefix(1);
      continue;
    }
    end_plain();
    out += PartOf(*token) + ' ';
    text.remove_prefix(token->text.size());
  }
  end_plain();
  return out;
}

std::string LarkWriter::TextUntil(std::string_view end) {
  std::size_t plain = 0;
  while (plain < end.size() && SpecialAt(end.substr(plain)) == nullptr) ++plain;
  // No text holds a special token, so it ends the text without a rule. Blanks before it may be
  // those of the text.
  const bool blank = end.substr(0, plain).find_first_not_of(" \n") == end.npos;
  if (plain < end.size() && blank) return Terminal("/(?s:.+)/") + "? " + Literal(end.substr(plain));
  std::string regex = "/(?s:.*)";
  AppendRegexOf(regex, end.substr(0, plain));
  return LazyRule(regex + "/") + ' ' + Literal(end.substr(plain));
}

}  // namespace penstock::router::answer
