// Appending JSON to a string, with serde_json's choice among equivalent forms: compact, escapes
// only where they must be, shortest decimals with at least one digit after the point.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

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

// JSON text that is kept and written as it is.
struct Raw {
  std::string_view text;
};

// A comma if `out` ends with a value, so that nothing else needs to know what comes first.
inline void AppendComma(std::string& out) {
  if (out.empty()) return;
  switch (out.back()) {
    case '{':
    case '[':
    case ':':
    case ',':
    case ' ':
    case '\n':
      return;
    default:
      out += ',';
  }
}

// Any value: a string, a number, a bool, null, Raw, an std::optional of them (null if absent), or a
// function that appends the value.
template <class T>
void Append(std::string& out, const T& value) {
  if constexpr (std::same_as<T, std::nullptr_t>) {
    out += "null";
  } else if constexpr (std::same_as<T, bool>) {
    AppendBool(out, value);
  } else if constexpr (std::integral<T>) {
    AppendInteger(out, value);
  } else if constexpr (std::same_as<T, float>) {
    AppendFloat(out, value);
  } else if constexpr (std::same_as<T, double>) {
    AppendDouble(out, value);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    AppendString(out, value);
  } else if constexpr (std::same_as<T, Raw>) {
    out += value.text;
  } else if constexpr (std::invocable<const T&, std::string&>) {
    value(out);
  } else {
    value ? Append(out, *value) : Append(out, nullptr);
  }
}

inline void AppendKey(std::string& out, std::string_view key) {
  AppendComma(out);
  out += '"';
  out += key;
  out.append("\":", 2);
}
// A literal knows its length: this runs for every member of every streamed token.
template <std::size_t kSize>
void AppendKey(std::string& out, const char (&key)[kSize]) {
  AppendKey(out, std::string_view(key, kSize - 1));
}

// "key":value,… of an object that the caller opens and closes. Keys need no escapes.
inline void AppendMembers(std::string&) {}
template <class Key, class T, class... More>
void AppendMembers(std::string& out, const Key& key, const T& value, const More&... more) {
  AppendKey(out, key);
  Append(out, value);
  AppendMembers(out, more...);
}

// {"key":value,…}
template <class... Members>
void AppendObject(std::string& out, const Members&... members) {
  AppendComma(out);
  out += '{';
  AppendMembers(out, members...);
  out += '}';
}

template <class... Members>
std::string ObjectText(const Members&... members) {
  std::string out;
  AppendObject(out, members...);
  return out;
}

// [value,…]; `append` is called for each value of the range.
template <class Range, class F>
void AppendArray(std::string& out, const Range& values, const F& append) {
  out += '[';
  for (const auto& value : values) {
    AppendComma(out);
    append(out, value);
  }
  out += ']';
}

// The same as the value of a member. They keep references to what is no temporary.
template <class... Members>
auto Object(Members&&... members) {
  return [kept = std::tuple<Members...>(std::forward<Members>(members)...)](std::string& out) {
    std::apply([&out](const auto&... each) { AppendObject(out, each...); }, kept);
  };
}
template <class Range, class F>
auto Array(Range&& values, F append) {
  return [kept = std::tuple<Range>(std::forward<Range>(values)), append](std::string& out) {
    AppendArray(out, std::get<0>(kept), append);
  };
}

}  // namespace penstock::router::json
