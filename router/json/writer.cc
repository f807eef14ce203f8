#include "router/json/writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "router/json/escapes.h"
#include "router/json/plain_float.h"
#include "router/json/unicode.h"

namespace penstock::router::json {
namespace {

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

// Lays out the digits of a scientific form as the ryu crate does: plain while the decimal point
// stays within `most` digits and behind at most `zeros` leading zeros, else with an exponent.
void Layout(std::string& out, std::string_view scientific, int most, int zeros) {
  if (scientific.front() == '-') {
    out += '-';
    scientific.remove_prefix(1);
  }
  const std::size_t e = scientific.find('e');
  int exponent = 0;
  const std::size_t sign = scientific[e + 1] == '+' ? 1 : 0;
  std::from_chars(scientific.data() + e + 1 + sign, scientific.data() + scientific.size(),
                  exponent);
  std::array<char, 24> all;  // a double has 17
  all[0] = scientific[0];
  const std::size_t behind = e > 2 ? scientific.copy(all.data() + 1, e - 2, 2) : 0;
  const std::string_view digits(all.data(), 1 + behind);
  const int length = static_cast<int>(digits.size());
  const int point = exponent + 1;  // digits in front of the decimal point
  if (length <= point && point <= most) {
    out.append(digits).append(static_cast<std::size_t>(point - length), '0').append(".0");
  } else if (point > 0 && point <= most) {
    out.append(digits, 0, static_cast<std::size_t>(point)).append(".");
    out.append(digits, static_cast<std::size_t>(point));
  } else if (point > -zeros && point <= 0) {
    out.append("0.").append(static_cast<std::size_t>(-point), '0').append(digits);
  } else {
    out += digits[0];
    if (length > 1) out.append(".").append(digits, 1);
    out.append("e").append(std::to_string(exponent));
  }
}

template <class T>
void AppendReal(std::string& out, T value, int most, int zeros) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  if (value == 0) {
    out += std::signbit(value) ? "-0.0" : "0.0";
    return;
  }
  std::array<char, 32> text;
  char* const limit = text.data() + text.size();
  if (const T size = std::abs(value); size >= T{1e-5} && size < T{1e6}) {  // nearly all: plain
    out.append(text.data(), std::to_chars(text.data(), limit, value, std::chars_format::fixed).ptr);
    if (value == std::trunc(value)) out += ".0";
    return;
  }
  const auto end = std::to_chars(text.data(), limit, value, std::chars_format::scientific).ptr;
  Layout(out, {text.data(), static_cast<std::size_t>(end - text.data())}, most, zeros);
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

void AppendFloat(std::string& out, float value) {
  if (!AppendPlainFloat(out, value)) AppendReal(out, value, 13, 6);
}

void AppendDouble(std::string& out, double value) { AppendReal(out, value, 16, 5); }

}  // namespace penstock::router::json
