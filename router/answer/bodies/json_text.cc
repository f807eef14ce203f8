#include "router/answer/bodies/json_text.h"

#include <charconv>

namespace penstock::router::answer {

void AppendEscaped(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  constexpr std::string_view kControls = "\b\t\n\f\r";
  constexpr std::string_view kLetters = "btnfr";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (const auto place = kControls.find(c); place != kControls.npos) {
      (out += '\\') += kLetters[place];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
}

void AppendUtf8(std::string& out, std::uint32_t code_point) {
  constexpr std::uint32_t kReplacement = 0xFFFD;
  const bool surrogate = code_point >= 0xD800 && code_point < 0xE000;
  const std::uint32_t c = surrogate || code_point > 0x10FFFF ? kReplacement : code_point;
  const auto add = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    add(0xE0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3F));
  } else {
    add(0xF0 | c >> 18);
    add(0x80 | (c >> 12 & 0x3F));
    add(0x80 | (c >> 6 & 0x3F));
  }
  add(0x80 | (c & 0x3F));
}

bool ReadHex(std::string_view digits, std::uint32_t& value) {
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, 16);
  return error == std::errc() && stop == end;
}

}  // namespace penstock::router::answer
