// What goes wrong, in serde_json's words and places.
#include <algorithm>

#include "router/json/reader.h"
#include "router/json/unicode.h"
#include "router/json/writer.h"

namespace penstock::router::json {
namespace {

constexpr std::size_t kShownText = 200;  // bytes of a client's string in an error

}  // namespace

std::string Error::Text() const { return (path.empty() ? "" : path + ": ") + Place(); }

std::string Error::Place() const {
  return what + " at line " + std::to_string(line) + " column " + std::to_string(column);
}

std::string Describe(const Number& number) {
  std::string text = "integer `";
  switch (number.kind) {
    case Number::Kind::kUnsigned:
      text += std::to_string(number.magnitude);
      break;
    case Number::Kind::kNegative:
      text += std::to_string(number.negative);
      break;
    case Number::Kind::kFloat:
      text = "floating point `";
      AppendDouble(text, number.value);
      break;
  }
  return text + "`";
}

std::string Quoted(std::string_view text) {
  std::string shown = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        shown += "\\\"";
        break;
      case '\\':
        shown += "\\\\";
        break;
      case '\n':
        shown += "\\n";
        break;
      case '\r':
        shown += "\\r";
        break;
      case '\t':
        shown += "\\t";
        break;
      case '\0':
        shown += "\\0";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          constexpr std::string_view kHex = "0123456789abcdef";
          shown += "\\u{";
          if (c >= 0x10) shown += kHex[static_cast<unsigned char>(c) >> 4];
          shown += kHex[static_cast<unsigned char>(c) & 0xf];
          shown += '}';
        } else {
          shown += c;
        }
    }
  }
  return shown + "\"";
}

std::string DescribeString(std::string_view text) {
  const std::string_view head = CutUtf8(text, kShownText);
  std::string shown = "string " + Quoted(head);
  if (head.size() < text.size()) shown.insert(shown.size() - 1, "…");
  return shown;
}

bool Reader::Fail(Error::Kind kind, std::string_view what, std::size_t index) {
  if (failed_) return false;
  failed_ = true;
  error_.kind = kind;
  error_.what = what;
  error_.path = Path(levels_.size());
  index = std::min(index, text_.size());
  const std::string_view before = text_.substr(0, index);
  error_.line = 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  const std::size_t newline = before.rfind('\n');
  error_.column = newline == std::string_view::npos ? index : index - newline - 1;
  return false;
}

bool Reader::SyntaxPeek(std::string_view what) {
  return Fail(Error::Kind::kSyntax, what, position_ + 1);
}

bool Reader::FailType(std::string_view found, std::string_view expected) {
  if (failed_) return false;
  error_.found = found;
  error_.expected = expected;
  return Fail(Error::Kind::kData,
              "invalid type: " + std::string(found) + ", expected " + std::string(expected),
              position_);
}

bool Reader::FailValue(std::string_view found, std::string_view expected) {
  if (failed_) return false;
  error_.found = found;
  error_.expected = expected;
  return Fail(Error::Kind::kData,
              "invalid value: " + std::string(found) + ", expected " + std::string(expected),
              position_);
}

bool Reader::FailShape(std::string what) {
  constexpr std::string_view kBlanks = " \n\t\r";
  const auto next = [&] {
    return std::min(text_.find_first_not_of(kBlanks, position_), text_.size());
  };
  position_ = next();
  if (position_ < text_.size()) {
    const char c = text_[position_];
    const bool array = !levels_.empty() && levels_.back().array;
    if (c == ']' || c == '}') ++position_;
    if (c == ',' && array) {
      ++position_;
      position_ = next();
    }
  }
  return Fail(Error::Kind::kData, what, position_);
}

bool Reader::FailNoValue() {
  char c = 0;
  return Peek(c, "EOF while parsing a value") && SyntaxPeek("expected value");
}

bool Reader::FailObject(std::string what) { return Fail(Error::Kind::kData, what, position_); }

std::string Reader::Path(std::size_t depth) const {
  std::string path;
  for (std::size_t i = 0; i < depth; ++i) {
    const Level& level = levels_[i];
    if (!level.in_value) {
      if (level.in_key && !path.empty()) path += ".?";  // of a key that cannot be read
      break;
    }
    if (level.array) {
      path.append("[").append(std::to_string(level.index)).append("]");
    } else {
      if (!path.empty()) path += '.';
      path += level.key;
    }
  }
  return path;
}

}  // namespace penstock::router::json
