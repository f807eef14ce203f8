#include "router/json/writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "router/json/unicode.h"

namespace penstock::router::json {
namespace {

// 0: as it is; 'u': \u00XX; else the letter after the backslash.
constexpr std::array<char, 256> MakeEscapes() {
  std::array<char, 256> escapes{};
  for (int c = 0; c < 0x20; ++c) escapes[static_cast<std::size_t>(c)] = 'u';
  escapes['\b'] = 'b';
  escapes['\f'] = 'f';
  escapes['\n'] = 'n';
  escapes['\r'] = 'r';
  escapes['\t'] = 't';
  escapes['"'] = '"';
  escapes['\\'] = '\\';
  return escapes;
}
constexpr std::array<char, 256> kEscapes = MakeEscapes();

// ASCII that needs no escape.
bool IsPlain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x80 && kEscapes[byte] == 0;
}

void AppendEscaped(std::string& out, std::string_view text) {
  std::size_t run = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const char escape = kEscapes[byte];
    if (escape == 0) continue;
    out.append(text.substr(run, i - run));
    run = i + 1;
    out += '\\';
    out += escape;
    if (escape == 'u') {
      out += "00";
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 0xf];
    }
  }
  out.append(text.substr(run));
}

std::string Repaired(std::string_view text) {
  std::string good;
  while (!text.empty()) {
    std::size_t length = 1;
    while (length <= 4 && length <= text.size() && !IsUtf8(text.substr(0, length))) ++length;
    if (length > 4 || length > text.size()) {
      good += "\xef\xbf\xbd";
      text.remove_prefix(1);
    } else {
      good.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return good;
}

// Plain from `least` up to `most`, else with an exponent, as serde_json writes numbers. `most` is
// below the size from which the fixed notation of to_chars has more digits than the shortest form.
template <class T>
void AppendReal(std::string& out, T value, T least, T most) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const T size = std::abs(value);
  const bool plain = size == 0 || (size >= least && size < most);
  std::array<char, 40> buffer;
  const char* const end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                    plain ? std::chars_format::fixed : std::chars_format::scientific)
          .ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t e = text.find('e');
  out += text.substr(0, e);
  if (e == text.npos) {
    if (text.find('.') == text.npos) out += ".0";
    return;
  }
  const char* const digits = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  int exponent = 0;
  std::from_chars(digits, end, exponent);  // "e-07" is written "e-7"
  out += 'e';
  AppendInteger(out, exponent);
}

}  // namespace

void AppendString(std::string& out, std::string_view text) {
  out += '"';
  if (std::all_of(text.begin(), text.end(), IsPlain)) {
    out += text;
  } else if (IsUtf8(text)) {
    AppendEscaped(out, text);
  } else {
    AppendEscaped(out, Repaired(text));
  }
  out += '"';
}

void AppendFloat(std::string& out, float value) { AppendReal(out, value, 1e-6f, 1e7f); }

void AppendDouble(std::string& out, double value) { AppendReal(out, value, 1e-5, 1e16); }

}  // namespace penstock::router::json
