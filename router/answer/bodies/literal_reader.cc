#include "router/answer/bodies/literal_reader.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "router/answer/bodies/json_text.h"
#include "router/answer/bodies/marker_search.h"
#include "router/answer/cursor.h"

namespace penstock::router::answer {
namespace {

constexpr std::string_view kQuotes[] = {"\"\"\"", "'''", "\"", "'"};

// Separates name and value of an argument. The brace of the arguments is written with the first.
constexpr char kOfArguments = '=';

// The word ends before one of these.
constexpr std::string_view kWordEnds = ",)]}:= \n\t\r";

std::size_t SkipDigits(std::string_view text, std::size_t i) {
  while (i < text.size() && text[i] >= '0' && text[i] <= '9') ++i;
  return i;
}

}  // namespace

std::string NumberAsJson(std::string_view text) {
  std::string out;
  if (text.starts_with('-')) out = "-";
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const std::size_t whole = SkipDigits(text, 0);
  if (whole > 1 && text[0] == '0') return "";
  out += whole == 0 ? "0" : text.substr(0, whole);
  std::size_t i = whole;
  if (i < text.size() && text[i] == '.') {
    const std::size_t end = SkipDigits(text, ++i);
    if (whole == 0 && end == i) return "";
    out.append(".").append(end == i ? "0" : text.substr(i, end - i));
    i = end;
  } else if (whole == 0) {
    return "";
  }
  if (i == text.size()) return out;
  if (text[i] != 'e' && text[i] != 'E') return "";
  out += text[i++];
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) out += text[i++];
  const std::size_t end = SkipDigits(text, i);
  if (end == i || end != text.size()) return "";
  return out.append(text.substr(i));
}

LiteralReader::LiteralReader(Begin begin, std::string_view quote) : quote_(quote) {
  if (begin == Begin::kValue) return;
  levels_.push_back({')', kOfArguments});
  expect_ = Expect::kFirstItem;
}

std::size_t LiteralReader::Take(std::string_view text, bool final, std::string& json) {
  std::size_t taken = 0;
  while (!done_ && !broken_ && taken < text.size()) {
    const std::size_t size = TakeOne(text.substr(taken), final, json);
    if (size == 0) break;
    taken += size;
  }
  return taken;
}

std::size_t LiteralReader::Break() {
  broken_ = true;
  return 0;
}

std::size_t LiteralReader::TakeOne(std::string_view text, bool final, std::string& json) {
  if (!string_end_.empty()) return TakeString(text, final, json);
  std::size_t blanks = 0;
  while (blanks < text.size() && IsBlank(text[blanks])) ++blanks;
  if (blanks > 0) return blanks;
  switch (expect_) {
    case Expect::kFirstItem:
    case Expect::kItem:
      return TakeItem(text, final, json);
    case Expect::kValue:
      return TakeValue(text, final, json);
    case Expect::kSeparator:
      if (text.front() != levels_.back().separator) return Break();
      json += ": ";
      expect_ = Expect::kValue;
      return 1;
    case Expect::kComma:
      if (text.front() == levels_.back().close) return Close(json);
      if (text.front() != ',') return Break();
      expect_ = Expect::kItem;
      return 1;
  }
  return Break();
}

std::size_t LiteralReader::TakeItem(std::string_view text, bool final, std::string& json) {
  const Level& level = levels_.back();
  if (text.front() == level.close) return Close(json);
  return level.separator == 0 ? TakeValue(text, final, json) : TakeKey(text, final, json);
}

// Writes what stands before a key, or before a value of a list.
void LiteralReader::BeginItem(std::string& json) {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  const bool value_of_key = expect_ == Expect::kValue && level.separator != 0;
  if (value_of_key) return;
  if (!level.empty) json += ", ";
  if (level.empty && level.separator == kOfArguments) json += '{';
  level.empty = false;
}

std::size_t LiteralReader::TakeValue(std::string_view text, bool final, std::string& json) {
  switch (text.front()) {
    case '{':
      return Open({'}', ':'}, json);
    case '[':
      return Open({']'}, json);
    case '(':
      return Open({')'}, json);
    default:
      break;
  }
  if (const std::size_t size = TakeQuote(text, final, json); size > 0 || !string_end_.empty()) {
    return size;
  }
  const bool quote_possible = !final && !quote_.empty() && quote_.starts_with(text);
  if (quote_possible || text.front() == '"' || text.front() == '\'') return 0;
  return TakeScalar(text, final, json);
}

std::size_t LiteralReader::TakeKey(std::string_view text, bool final, std::string& json) {
  if (const std::size_t size = TakeQuote(text, final, json); size > 0) return size;
  const bool quote_possible = !final && !quote_.empty() && quote_.starts_with(text);
  if (quote_possible || text.front() == '"' || text.front() == '\'') return 0;
  const std::size_t end = text.find_first_of(kWordEnds);
  const std::size_t next = text.find_first_not_of(" \n\t\r", std::min(end, text.size()));
  if (next == text.npos && !final) return 0;
  if (end == 0 || next == text.npos || text[next] != levels_.back().separator) return Break();
  BeginItem(json);
  json += '"';
  AppendEscaped(json, text.substr(0, end));
  json += '"';
  expect_ = Expect::kSeparator;
  return end;
}

// 0 if no quote is next, or if more text is needed to tell which.
std::size_t LiteralReader::TakeQuote(std::string_view text, bool final, std::string& json) {
  std::string_view found;
  if (!quote_.empty() && text.starts_with(quote_)) found = quote_;
  for (const std::string_view quote : kQuotes) {
    if (!found.empty()) break;
    if (text.starts_with(quote)) found = quote;
    if (!final && found.empty() && quote.starts_with(text)) return 0;
  }
  if (found.empty()) return 0;
  BeginItem(json);
  json += '"';
  string_end_ = found;
  return found.size();
}

std::size_t LiteralReader::TakeString(std::string_view text, bool final, std::string& json) {
  const bool escapes = string_end_ != quote_;
  if (escapes && text.front() == '\\') return TakeEscape(text, final, json);
  bool found = false;
  const std::size_t limit = escapes ? std::min(text.find('\\'), text.size()) : text.size();
  const bool whole = final || limit < text.size();
  const std::size_t size = BytesBefore(text.substr(0, limit), string_end_, whole, found);
  AppendEscaped(json, text.substr(0, size));
  if (!found) return size;
  json += '"';
  const std::size_t taken = size + string_end_.size();
  string_end_ = {};
  const bool key = !levels_.empty() && levels_.back().separator != 0 && expect_ != Expect::kValue;
  if (key) {
    expect_ = Expect::kSeparator;
  } else {
    ValueEnded();
  }
  return taken;
}

// Python's escapes. An unknown one is two characters of the string.
std::size_t LiteralReader::TakeEscape(std::string_view text, bool final, std::string& json) {
  constexpr std::string_view kLetters = "abfnrtv\\'\"/";
  constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"/";
  constexpr std::string_view kHexLetters = "xuU";
  constexpr std::size_t kDigits[] = {2, 4, 8};
  if (text.size() < 2) {
    if (final) AppendEscaped(json, text);
    return final ? 1 : 0;
  }
  if (text[1] == '\n') return 2;
  const std::size_t hex = kHexLetters.find(text[1]);
  if (hex != kHexLetters.npos) {
    const std::size_t end = 2 + kDigits[hex];
    if (text.size() < end && !final) return 0;
    std::uint32_t code = 0;
    if (text.size() >= end && ReadHex(text.substr(2, kDigits[hex]), code)) {
      // A pair of surrogates stays as it is, because JSON writes it alike.
      if (text[1] == 'u') {
        json += text.substr(0, end);
        return end;
      }
      std::string character;
      AppendUtf8(character, code);
      AppendEscaped(json, character);
      return end;
    }
  }
  const std::size_t place = kLetters.find(text[1]);
  const char value = place == kLetters.npos ? 0 : kValues[place];
  AppendEscaped(json, value == 0 ? text.substr(0, 1) : std::string_view(&value, 1));
  return value == 0 ? 1 : 2;
}

std::size_t LiteralReader::TakeScalar(std::string_view text, bool final, std::string& json) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"},
      {"true", "true"}, {"false", "false"}, {"null", "null"}};
  const std::size_t end = text.find_first_of(kWordEnds);
  if (end == text.npos && !final) return 0;
  const std::string_view word = text.substr(0, end);
  std::string value = NumberAsJson(word);
  for (const auto& [name, meaning] : kWords) {
    if (word == name) value = meaning;
  }
  if (value.empty()) return Break();
  BeginItem(json);
  json += value;
  ValueEnded();
  return word.size();
}

std::size_t LiteralReader::Open(Level level, std::string& json) {
  BeginItem(json);
  json += level.separator == 0 ? '[' : '{';
  levels_.push_back(level);
  expect_ = Expect::kFirstItem;
  return 1;
}

std::size_t LiteralReader::Close(std::string& json) {
  const Level level = levels_.back();
  levels_.pop_back();
  if (level.empty && level.separator == kOfArguments) json += '{';
  json += level.separator == 0 ? ']' : '}';
  ValueEnded();
  return 1;
}

void LiteralReader::ValueEnded() {
  done_ = levels_.empty();
  expect_ = Expect::kComma;
}

}  // namespace penstock::router::answer
