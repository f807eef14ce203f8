#include "launcher/serving/java_properties.h"

#include <absl/status/status.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

namespace penstock::launcher {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\f'; }

std::string_view SkipBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  return text;
}

bool EndsInOddBackslashes(std::string_view line) {
  std::size_t count = 0;
  while (count < line.size() && line[line.size() - 1 - count] == '\\') ++count;
  return count % 2 == 1;
}

void AppendUtf8(std::string& out, std::uint32_t point) {
  if (point < 0x80) {
    out += static_cast<char>(point);
  } else if (point < 0x800) {
    out += static_cast<char>(0xc0 | point >> 6);
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    out += static_cast<char>(0xe0 | point >> 12);
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | point >> 18);
    out += static_cast<char>(0x80 | (point >> 12 & 0x3f));
    out += static_cast<char>(0x80 | (point >> 6 & 0x3f));
    out += static_cast<char>(0x80 | (point & 0x3f));
  }
}

// Reads one logical line: the key, the separator, the value.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(SkipBlanks(line)) {}

  // Returns false if an escape is malformed.
  bool Read(Property& out) {
    while (!rest_.empty() && !IsBlank(rest_.front()) && rest_[0] != '=' && rest_[0] != ':') {
      if (!TakeCharacter(out.key)) return false;
    }
    rest_ = SkipBlanks(rest_);
    if (!rest_.empty() && (rest_[0] == '=' || rest_[0] == ':')) rest_.remove_prefix(1);
    std::size_t end = 0;  // of the value without blanks
    bool blank_before = !rest_.empty() && IsBlank(rest_[0]);
    rest_ = SkipBlanks(rest_);
    while (!rest_.empty() && !(blank_before && rest_.front() == '#')) {
      blank_before = IsBlank(rest_.front());
      if (!TakeCharacter(out.value)) return false;
      if (!blank_before) end = out.value.size();
    }
    out.value.resize(end);
    return true;
  }

 private:
  bool TakeCharacter(std::string& out) {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    if (c != '\\' || rest_.empty()) {
      if (c != '\\') out += c;
      return true;
    }
    const char escaped = rest_.front();
    rest_.remove_prefix(1);
    constexpr std::string_view kNames = "tnrf";
    constexpr std::string_view kMeanings = "\t\n\r\f";
    if (escaped == 'u') return TakeUnicode(out);
    const std::size_t named = kNames.find(escaped);
    out += named == kNames.npos ? escaped : kMeanings[named];
    return true;
  }

  std::optional<std::uint32_t> TakeHex4() {
    std::uint32_t unit = 0;
    if (rest_.size() < 4) return std::nullopt;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + 4, unit, 16);
    if (error != std::errc() || end != rest_.data() + 4) return std::nullopt;
    rest_.remove_prefix(4);
    return unit;
  }

  bool TakeUnicode(std::string& out) {
    const auto unit = TakeHex4();
    if (!unit) return false;
    std::uint32_t point = *unit;
    if (point >= 0xd800 && point < 0xdc00 && rest_.starts_with("\\u")) {
      rest_.remove_prefix(2);
      const auto low = TakeHex4();
      if (!low || *low < 0xdc00 || *low >= 0xe000) return false;
      point = 0x10000 + ((point - 0xd800) << 10) + (*low - 0xdc00);
    }
    if (point >= 0xd800 && point < 0xe000) return false;
    AppendUtf8(out, point);
    return true;
  }

  std::string_view rest_;
};

class FileReader {
 public:
  explicit FileReader(std::string_view text) : rest_(text) {}

  // The next line that is neither empty nor a comment, continuations joined; false at the end.
  bool Next(std::string& line, int& number) {
    while (!rest_.empty()) {
      number = number_ + 1;
      line = TakeNatural();
      const std::string_view content = SkipBlanks(line);
      if (content.empty() || content[0] == '#' || content[0] == '!') continue;
      while (EndsInOddBackslashes(line)) {
        line.pop_back();
        if (rest_.empty()) break;
        line += SkipBlanks(TakeNatural());
      }
      return true;
    }
    return false;
  }

 private:
  std::string TakeNatural() {
    ++number_;
    const std::size_t end = rest_.find_first_of("\r\n");
    const std::string line(rest_.substr(0, end));
    if (end == rest_.npos) {
      rest_ = {};
      return line;
    }
    const bool pair = rest_.substr(end, 2) == "\r\n";
    rest_.remove_prefix(end + (pair ? 2 : 1));
    return line;
  }

  std::string_view rest_;
  int number_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Property>> ParseJavaProperties(std::string_view text,
                                                          const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  std::vector<Property> properties;
  FileReader file(text);
  std::string line;
  for (int number = 0; file.Next(line, number);) {
    Property property;
    property.line = number;
    if (!LineReader(line).Read(property)) {
      return absl::InvalidArgumentError(name + ":" + std::to_string(number) +
                                        ": \\u must be followed by four hexadecimal digits of a "
                                        "character");
    }
    properties.push_back(std::move(property));
  }
  return properties;
}

}  // namespace penstock::launcher
