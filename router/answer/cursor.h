// Reads the beginning of a text of which more may come.
//
// A read that fails because the text ends is undecided: with more text it could succeed. The result
// of several reads counts only if none of them was undecided, so it does not depend on where the
// text was cut.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "router/answer/tool_set.h"

namespace penstock::router::answer {

constexpr bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

class Cursor {
 public:
  // `final`: no more text comes, and nothing is undecided.
  Cursor(std::string_view text, bool final) : text_(text), final_(final) {}

  std::size_t position() const { return position_; }
  bool undecided() const { return undecided_; }

  // Takes this text if it is next.
  bool Take(std::string_view literal);
  // Takes the first of these that is next.
  bool TakeAny(std::span<const std::string_view> literals);
  // Whether this character is next. It is not taken.
  bool NextIs(char c);
  // Always true, for chains of reads.
  bool SkipBlanks();
  bool Optional(std::string_view literal) { return Take(literal) || true; }
  // Takes the longest name of a tool that is next.
  bool TakeTool(const ToolSet& tools, const Tool*& tool);
  // Takes at most `most` characters that are letters, digits, '_', '-', ':' or '.'.
  bool TakeWord(std::size_t most);

  // Takes the text before `end` and `end`: at most `most` bytes in one line.
  bool TakeUntil(std::string_view end, std::size_t most, std::string_view& out);

  // A JSON string, without its quotes and with its escapes.
  bool TakeString(std::string_view& out);
  // A JSON value, if its brackets match.
  bool TakeValue(std::string_view& out);

 private:
  std::string_view rest() const { return text_.substr(position_); }
  // Fails for want of text.
  bool NeedMore();

  std::string_view text_;
  bool final_;
  bool undecided_ = false;
  std::size_t position_ = 0;
};

}  // namespace penstock::router::answer
