#include "router/api/openai/gbnf_parser.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "router/json/unicode.h"

namespace penstock::router::openai {
namespace {

bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
}

}  // namespace

bool GbnfParser::Fail(std::string message) {
  if (error_.empty()) error_ = std::move(message);
  return false;
}

void GbnfParser::SkipBlanks() {
  while (!rest_.empty()) {
    if (rest_.front() == '#') {
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    } else if (std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
      rest_.remove_prefix(1);
    } else {
      return;
    }
  }
}

bool GbnfParser::Take(char c) {
  if (Next() != c || rest_.empty()) return false;
  rest_.remove_prefix(1);
  return true;
}

std::string_view GbnfParser::TakeName() {
  const auto end = std::ranges::find_if_not(rest_, IsNameChar);
  const std::string_view name = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
  rest_.remove_prefix(name.size());
  return name;
}

std::size_t GbnfParser::IndexOf(std::string_view name) {
  const auto [found, added] = indexes_.try_emplace(std::string(name), rules_.size());
  if (added) rules_.push_back({std::string(name), std::nullopt});
  return found->second;
}

// Whether a rule begins here: a name and `::=`.
bool GbnfParser::AtRule() {
  const std::string_view before = rest_;
  const bool named = !TakeName().empty();
  SkipBlanks();
  const bool at_rule = named && rest_.starts_with("::=");
  rest_ = before;
  return at_rule;
}

bool GbnfParser::Parse() {
  SkipBlanks();
  while (!rest_.empty()) {
    if (!AtRule()) return Fail("expected a rule `name ::= …`");
    if (!ReadRule()) return false;
    SkipBlanks();
  }
  for (const GbnfRule& rule : rules_) {
    if (!rule.body) return Fail("the rule `" + rule.name + "` is not defined");
  }
  return indexes_.contains("root") || Fail("the rule `root` is not defined");
}

bool GbnfParser::ReadRule() {
  const std::string name(TakeName());
  SkipBlanks();
  rest_.remove_prefix(3);  // ::=
  const std::size_t index = IndexOf(name);
  if (rules_[index].body) return Fail("the rule `" + name + "` is defined twice");
  GbnfNode body;
  if (!ReadChoice(body, 0)) {
    error_ = "in the rule `" + name + "`: " + error_;
    return false;
  }
  rules_[index].body = std::move(body);
  return true;
}

bool GbnfParser::ReadChoice(GbnfNode& out, int depth) {
  if (depth > kMaxDepth) return Fail("more than " + std::to_string(kMaxDepth) + " nested groups");
  out.kind = GbnfNode::Kind::kChoice;
  do {
    if (!ReadSequence(out.parts.emplace_back(), depth)) return false;
    SkipBlanks();
  } while (Take('|'));
  return true;
}

bool GbnfParser::ReadSequence(GbnfNode& out, int depth) {
  while (true) {
    SkipBlanks();
    if (rest_.empty() || Next() == '|' || Next() == ')') return true;
    if (depth == 0 && AtRule()) return true;
    GbnfNode element;
    if (!ReadElement(element, depth) || !ReadPostfix(element)) return false;
    out.parts.push_back(std::move(element));
  }
}

bool GbnfParser::ReadElement(GbnfNode& out, int depth) {
  if (Take('(')) {
    if (!ReadChoice(out, depth + 1)) return false;
    return Take(')') || Fail("a `(` is not closed");
  }
  if (Take('"')) return ReadLiteral(out);
  if (Take('[')) return ReadClass(out);
  if (Take('.')) {
    out.kind = GbnfNode::Kind::kAny;
    return true;
  }
  const std::string_view name = TakeName();
  if (name.empty()) return Fail("unexpected `" + std::string(1, Next()) + "`");
  out.kind = GbnfNode::Kind::kRule;
  out.rule = IndexOf(name);
  return true;
}

bool GbnfParser::ReadPostfix(GbnfNode& out) {
  SkipBlanks();
  GbnfNode repeat;
  repeat.kind = GbnfNode::Kind::kRepeat;
  if (Take('+')) {
    repeat.least = 1;
  } else if (Take('?')) {
    repeat.most = 1;
  } else if (Take('{')) {
    if (!ReadBounds(repeat)) return false;
  } else if (!Take('*')) {
    return true;
  }
  repeat.parts.push_back(std::move(out));
  out = std::move(repeat);
  return true;
}

bool GbnfParser::ReadBounds(GbnfNode& repeat) {
  if (Next() != ',' && !ReadNumber(repeat.least)) return false;
  if (!Take(',')) {
    repeat.most = repeat.least;
  } else if (Next() != '}') {
    if (!ReadNumber(repeat.most.emplace())) return false;
  }
  if (!Take('}')) return Fail("a `{` is not closed");
  return !repeat.most || *repeat.most >= repeat.least || Fail("bounds of a repeat are reversed");
}

bool GbnfParser::ReadNumber(std::uint32_t& out) {
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out);
  if (error != std::errc() || out > kMaxRepeats) {
    return Fail("bounds of a repeat must be from 0 to " + std::to_string(kMaxRepeats));
  }
  rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
  return true;
}

bool GbnfParser::ReadLiteral(GbnfNode& out) {
  out.kind = GbnfNode::Kind::kLiteral;
  while (!Take('"')) {
    char32_t c = 0;
    if (rest_.empty()) return Fail("a `\"` is not closed");
    if (!ReadChar(c)) return false;
    json::AppendUtf8(out.text, c);
  }
  return true;
}

bool GbnfParser::ReadClass(GbnfNode& out) {
  out.kind = GbnfNode::Kind::kClass;
  out.negated = Take('^');
  while (!Take(']')) {
    if (rest_.empty()) return Fail("a `[` is not closed");
    char32_t first = 0;
    if (!ReadChar(first)) return false;
    char32_t last = first;
    if (Next() == '-' && rest_.size() > 1 && rest_[1] != ']') {
      rest_.remove_prefix(1);
      if (!ReadChar(last)) return false;
    }
    if (last < first) return Fail("a range of characters is reversed");
    out.ranges.emplace_back(first, last);
  }
  return !out.ranges.empty() || Fail("a class of characters is empty");
}

// One character, written or escaped. The source is UTF-8, as all JSON strings.
bool GbnfParser::ReadChar(char32_t& out) {
  if (Take('\\')) return ReadEscape(out);
  const auto lead = static_cast<unsigned char>(rest_.front());
  const std::size_t size = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (size > rest_.size()) return Fail("a character is incomplete");
  constexpr unsigned kLeadMask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  out = lead & kLeadMask[size];
  for (std::size_t i = 1; i < size; ++i) {
    out = (out << 6) | (static_cast<unsigned char>(rest_[i]) & 0x3f);
  }
  rest_.remove_prefix(size);
  return true;
}

bool GbnfParser::ReadEscape(char32_t& out) {
  if (rest_.empty()) return Fail("an escape is incomplete");
  const char c = rest_.front();
  rest_.remove_prefix(1);
  if (c == 'x') return ReadHex(2, out);
  if (c == 'u') return ReadHex(4, out);
  if (c == 'U') return ReadHex(8, out);
  if (c == 'n' || c == 'r' || c == 't') {
    out = c == 'n' ? U'\n' : c == 'r' ? U'\r' : U'\t';
    return true;
  }
  out = static_cast<unsigned char>(c);
  const bool known = std::string_view("\\\"[]-^/'.").find(c) != std::string_view::npos;
  return known || Fail("the escape `\\" + std::string(1, c) + "` is not known");
}

bool GbnfParser::ReadHex(std::size_t digits, char32_t& out) {
  std::uint32_t value = 0;
  const std::string_view text = rest_.substr(0, digits);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const bool whole = text.size() == digits && end == text.data() + text.size();
  if (error != std::errc() || !whole || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
    return Fail("an escape must have " + std::to_string(digits) + " digits of a character");
  }
  rest_.remove_prefix(digits);
  out = value;
  return true;
}

}  // namespace penstock::router::openai
