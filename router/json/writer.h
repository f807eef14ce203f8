// Appending JSON to a string, with serde_json's choice among equivalent forms: compact, escapes
// only where they must be, shortest decimals with at least one digit after the point.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::router::json {

// With quotes. `text` should be UTF-8; malformed bytes become U+FFFD.
void AppendString(std::string& out, std::string_view text);

// The shortest decimal that gives the same binary32 (binary64); null when not finite.
void AppendFloat(std::string& out, float value);
void AppendDouble(std::string& out, double value);

template <std::integral T>
void AppendInteger(std::string& out, T value) {
  std::array<char, 24> text;
  out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
}

inline void AppendBool(std::string& out, bool value) { out += value ? "true" : "false"; }

}  // namespace penstock::router::json
