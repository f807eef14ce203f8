#include "router/json/reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "router/json/unicode.h"
#include "router/json/writer.h"

namespace penstock::router::json {
namespace {

constexpr std::string_view kEofValue = "EOF while parsing a value";
constexpr std::string_view kEofString = "EOF while parsing a string";
constexpr std::string_view kEofObject = "EOF while parsing an object";
constexpr std::string_view kEofList = "EOF while parsing a list";

constexpr std::size_t kShownText = 200;  // bytes of a client's string in an error

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

Reader::Reader(std::string_view text, Limits limits) : text_(text), limits_(limits) {}

// --- Scanning

bool Reader::Peek(char& c, std::string_view eof) {
  if (failed_) return false;
  while (position_ < text_.size()) {
    c = text_[position_];
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return true;
    ++position_;
  }
  return SyntaxPeek(eof);
}

bool Reader::CountValue() {
  if (++values_ <= limits_.values) return true;
  return FailHere("more than " + std::to_string(limits_.values) + " values");
}

bool Reader::Ident(std::string_view rest) {
  for (const char expected : rest) {
    if (position_ >= text_.size()) return Syntax(kEofValue);
    if (text_[position_++] != expected) return Syntax("expected ident");
  }
  return true;
}

bool Reader::TakeNull() {
  char c = 0;
  if (!Peek(c, kEofValue) || c != 'n') return false;
  ++position_;
  return Ident("ull") && CountValue();
}

bool Reader::NextIs(char wanted) {
  char c = 0;
  return Peek(c, kEofValue) && c == wanted;
}

bool Reader::FailNext(std::string_view expected) {
  char c = 0;
  if (!Peek(c, kEofValue)) return false;
  switch (c) {
    case 'n':
      return TakeNull() && FailType("null", expected);
    case 't':
    case 'f': {
      bool value = false;
      return ReadBool(value, expected) &&
             FailType(value ? "boolean `true`" : "boolean `false`", expected);
    }
    case '"': {
      std::string text;
      return ReadString(text, expected) && FailType(DescribeString(text), expected);
    }
    case '[':
      return FailType("sequence", expected);
    case '{':
      return FailType("map", expected);
    default:
      break;
  }
  if (c != '-' && !IsDigit(c)) return SyntaxPeek("expected value");
  Number number;
  return ScanNumber(number) && FailType(Describe(number), expected);
}

bool Reader::ReadBool(bool& out, std::string_view expected) {
  char c = 0;
  if (!Peek(c, kEofValue)) return false;
  if (c != 't' && c != 'f') return FailNext(expected);
  ++position_;
  out = c == 't';
  return Ident(out ? "rue" : "alse") && CountValue();
}

bool Reader::ReadString(std::string& out, std::string_view expected) {
  char c = 0;
  if (!Peek(c, kEofValue)) return false;
  if (c != '"') return FailNext(expected);
  ++position_;
  return Text(out) && CountValue();
}

// The rest of a string whose opening quote was taken.
bool Reader::Text(std::string& out) {
  out.clear();
  const std::size_t start = position_;
  while (true) {
    const std::size_t run = position_;
    while (position_ < text_.size() && text_[position_] != '"' && text_[position_] != '\\' &&
           static_cast<unsigned char>(text_[position_]) >= 0x20) {
      ++position_;
    }
    out.append(text_.substr(run, position_ - run));
    if (position_ >= text_.size()) return Syntax(kEofString);
    const char c = text_[position_++];
    if (c == '"') break;
    if (c != '\\') {
      return Syntax("control character (\\u0000-\\u001F) found while parsing a string");
    }
    if (!Escape(out)) return false;
  }
  if (!IsUtf8(text_.substr(start, position_ - 1 - start))) {
    return Syntax("invalid unicode code point");
  }
  return true;
}

bool Reader::Escape(std::string& out) {
  if (position_ >= text_.size()) return Syntax(kEofString);
  constexpr std::string_view kNames = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char name = text_[position_++];
  if (const std::size_t at = kNames.find(name); at != kNames.npos) {
    out += kMeanings[at];
    return true;
  }
  if (name != 'u') return Syntax("invalid escape");
  std::uint32_t code = 0;
  if (!Hex4(code)) return false;
  if (code >= 0xdc00 && code <= 0xdfff) return Syntax("lone leading surrogate in hex escape");
  if (code >= 0xd800 && code <= 0xdbff) {
    for (const char expected : {'\\', 'u'}) {
      if (position_ >= text_.size()) return Syntax(kEofString);
      if (text_[position_++] != expected) return Syntax("unexpected end of hex escape");
    }
    std::uint32_t low = 0;
    if (!Hex4(low)) return false;
    if (low < 0xdc00 || low > 0xdfff) return Syntax("lone leading surrogate in hex escape");
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
  }
  AppendUtf8(out, code);
  return true;
}

bool Reader::Hex4(std::uint32_t& out) {
  if (text_.size() - position_ < 4) {
    position_ = text_.size();
    return Syntax(kEofString);
  }
  const char* begin = text_.data() + position_;
  position_ += 4;
  const auto [end, error] = std::from_chars(begin, begin + 4, out, 16);
  if (error != std::errc() || end != begin + 4) return Syntax("invalid escape");
  return true;
}

bool Reader::SkipDigits() {
  const std::size_t start = position_;
  while (position_ < text_.size() && IsDigit(text_[position_])) ++position_;
  return position_ > start;
}

bool Reader::ReadNumber(Number& out, std::string_view expected) {
  char c = 0;
  if (!Peek(c, kEofValue)) return false;
  if (c != '-' && !IsDigit(c)) return FailNext(expected);
  return ScanNumber(out);
}

bool Reader::ScanNumber(Number& out) {
  const std::size_t start = position_;
  if (text_[position_] == '-') ++position_;
  if (position_ >= text_.size()) return Syntax("invalid number");
  const char first = text_[position_++];
  if (!IsDigit(first)) return Syntax("invalid number");
  if (SkipDigits() && first == '0') {
    position_ = start + (text_[start] == '-' ? 2 : 1);
    return SyntaxPeek("invalid number");
  }
  bool integral = true;
  if (position_ < text_.size() && text_[position_] == '.') {
    integral = false;
    ++position_;
    if (!SkipDigits()) return SyntaxPeek(position_ < text_.size() ? "invalid number" : kEofValue);
  }
  if (position_ < text_.size() && (text_[position_] == 'e' || text_[position_] == 'E')) {
    integral = false;
    ++position_;
    if (position_ < text_.size() && (text_[position_] == '+' || text_[position_] == '-')) {
      ++position_;
    }
    if (position_ >= text_.size()) return Syntax(kEofValue);
    if (!SkipDigits()) {
      ++position_;
      return Syntax("invalid number");
    }
  }
  return ToNumber(text_.substr(start, position_ - start), integral, out) && CountValue();
}

bool Reader::ToNumber(std::string_view text, bool integral, Number& out) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  out = Number{};
  if (integral && text != "-0") {
    const bool negative = text.front() == '-';
    const auto result = negative ? std::from_chars(begin, end, out.negative)
                                 : std::from_chars(begin, end, out.magnitude);
    if (result.ec == std::errc()) {
      out.kind = negative ? Number::Kind::kNegative : Number::Kind::kUnsigned;
      out.value = negative ? static_cast<double>(out.negative) : static_cast<double>(out.magnitude);
      return true;
    }
  }
  out.kind = Number::Kind::kFloat;
  const auto result = std::from_chars(begin, end, out.value);
  if (result.ec == std::errc::result_out_of_range) {
    // A number that is too small is zero; one that is too large is an error. from_chars sets no
    // value in both cases.
    const std::string copy(text);
    out.value = std::strtod(copy.c_str(), nullptr);
    if (std::isinf(out.value)) return Syntax("number out of range");
  }
  return true;
}

bool Reader::AtEnd() {
  if (failed_) return false;
  const std::size_t next = text_.find_first_not_of(" \n\t\r", position_);
  if (next == std::string_view::npos) return true;
  position_ = next;
  return SyntaxPeek("trailing characters");
}

// --- Structure

bool Reader::Enter(bool array, std::string_view expected) {
  char c = 0;
  if (!Peek(c, kEofValue)) return false;
  if (c != (array ? '[' : '{')) return FailNext(expected);
  if (levels_.size() >= limits_.depth) return SyntaxPeek("recursion limit exceeded");
  if (!CountValue()) return false;
  ++position_;
  levels_.emplace_back().array = array;
  return true;
}

// To the next key or element.
bool Reader::Next() {
  Level& level = levels_.back();
  const char close = level.array ? ']' : '}';
  level.in_value = false;
  char c = 0;
  if (!Peek(c, level.array ? kEofList : kEofObject)) return false;
  if (c == close) {
    ++position_;
    levels_.pop_back();
    return false;
  }
  if (!level.first) {
    if (c != ',') return SyntaxPeek(level.array ? "expected `,` or `]`" : "expected `,` or `}`");
    ++position_;
    if (!Peek(c, kEofValue)) return false;
    if (c == close) return SyntaxPeek("trailing comma");
  }
  return true;
}

bool Reader::NextKey(std::string& key) {
  levels_.back().in_key = true;
  if (!Next()) return false;
  Level& level = levels_.back();
  level.first = false;
  if (text_[position_] != '"') return SyntaxPeek("key must be a string");
  ++position_;
  if (!Text(key)) return false;
  level.in_key = false;
  if (++level.members > limits_.members) {
    return FailHere("more than " + std::to_string(limits_.members) + " keys in one object");
  }
  level.key = key;
  return true;
}

bool Reader::Colon() {
  char c = 0;
  if (!Peek(c, kEofObject)) return false;
  if (c != ':') return SyntaxPeek("expected `:`");
  ++position_;
  levels_.back().in_value = true;
  return true;
}

bool Reader::NextElement() {
  if (!Next()) return false;
  Level& level = levels_.back();
  level.index = level.first ? 0 : level.index + 1;
  level.first = false;
  level.in_value = true;
  return true;
}

bool Reader::EnterEmptyArray(std::string_view expected) {
  const std::size_t start = position_;
  if (!EnterArray(expected)) return false;
  if (!NextElement()) return ok();
  position_ = start;
  levels_.pop_back();
  return FailType("sequence", expected);
}

bool Reader::Skip() {
  std::string scratch;
  const std::size_t base = levels_.size();
  // Not recursive: reads a value or enters a container, then continues with the innermost one.
  while (ok()) {
    if (NextIs('{')) {
      EnterObject("");
    } else if (NextIs('[')) {
      EnterArray("");
    } else if (NextIs('"')) {
      ReadString(scratch, "");
    } else if (NextIs('t') || NextIs('f')) {
      bool value = false;
      ReadBool(value, "");
    } else if (NextIs('n')) {
      TakeNull();
    } else {
      Number number;
      ReadNumber(number, "");
    }
    bool more = false;
    while (ok() && levels_.size() > base && !more) {
      more = levels_.back().array ? NextElement() : NextKey(scratch) && Colon();
    }
    if (!more) break;
  }
  return ok();
}

bool Reader::ReadRaw(std::string_view& out) {
  char c = 0;
  if (!Peek(c, kEofValue)) return false;
  const std::size_t start = position_;
  if (!Skip()) return false;
  out = text_.substr(start, position_ - start);
  return true;
}

// --- Errors, with the texts and positions of serde_json

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

std::string DescribeString(std::string_view text) {
  const std::string_view head = CutUtf8(text, kShownText);
  std::string shown = "string ";
  AppendString(shown, head);
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

bool Reader::FailFound(std::string_view problem, std::string_view found,
                       std::string_view expected) {
  if (failed_) return false;
  error_.found = found;
  error_.expected = expected;
  return FailHere(std::string(problem) + std::string(found) + ", expected " +
                  std::string(expected));
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

std::string Reader::PathTo(std::string_view key) const {
  std::string path = Path(levels_.size() - 1);
  if (!path.empty()) path += '.';
  return path.append(key);
}

}  // namespace penstock::router::json
