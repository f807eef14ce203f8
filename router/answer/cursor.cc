#include "router/answer/cursor.h"

#include <algorithm>

namespace penstock::router::answer {
namespace {

bool IsWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == ':' || c == '.';
}

// The end of a JSON string that begins at `begin`, after its last quote; npos if it has none.
std::size_t EndOfString(std::string_view text, std::size_t begin) {
  for (std::size_t i = begin + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return text.npos;
}

}  // namespace

bool Cursor::NeedMore() {
  undecided_ = undecided_ || !final_;
  return false;
}

bool Cursor::Take(std::string_view literal) {
  const std::string_view next = rest().substr(0, literal.size());
  if (next == literal) {
    position_ += literal.size();
    return true;
  }
  return literal.starts_with(next) ? NeedMore() : false;
}

bool Cursor::TakeAny(std::span<const std::string_view> literals) {
  return std::ranges::any_of(literals, [this](std::string_view literal) { return Take(literal); });
}

bool Cursor::NextIs(char c) { return rest().empty() ? NeedMore() : rest().front() == c; }

bool Cursor::SkipBlanks() {
  while (position_ < text_.size() && IsBlank(text_[position_])) ++position_;
  if (rest().empty()) NeedMore();
  return true;
}

bool Cursor::TakeTool(const ToolSet& tools, const Tool*& tool) {
  tool = nullptr;
  for (const Tool& each : tools.tools()) {
    if (rest().starts_with(each.name)) {
      if (tool == nullptr || tool->name.size() < each.name.size()) tool = &each;
    } else if (each.name.starts_with(rest())) {
      NeedMore();
    }
  }
  if (tool == nullptr) return false;
  position_ += tool->name.size();
  return true;
}

bool Cursor::TakeWord(std::size_t most) {
  std::size_t size = 0;
  while (size < most && size < rest().size() && IsWord(rest()[size])) ++size;
  position_ += size;
  if (size < most && rest().empty()) return NeedMore();
  return size > 0;
}

bool Cursor::TakeUntil(std::string_view end, std::size_t most, std::string_view& out) {
  const std::string_view next = rest();
  const std::size_t size = std::min(next.find(end), next.size());
  if (size > most || next.substr(0, size).find('\n') != next.npos) return false;
  if (size == next.size()) return NeedMore();
  out = next.substr(0, size);
  position_ += size + end.size();
  return true;
}

bool Cursor::TakeString(std::string_view& out) {
  if (!NextIs('"')) return false;
  const std::size_t end = EndOfString(text_, position_);
  if (end == text_.npos) return NeedMore();
  out = text_.substr(position_ + 1, end - position_ - 2);
  position_ = end;
  return true;
}

bool Cursor::TakeValue(std::string_view& out) {
  constexpr std::string_view kEnds = ",]} \n\t\r";
  const std::size_t begin = position_;
  std::size_t i = begin;
  for (std::size_t depth = 0; i < text_.size(); ++i) {
    const char c = text_[i];
    if (depth == 0 && i > begin && kEnds.find(c) != kEnds.npos) break;
    if (c == '"') {
      const std::size_t end = EndOfString(text_, i);
      if (end == text_.npos) return NeedMore();
      i = end - 1;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return false;
      --depth;
    }
  }
  if (i == text_.size()) return NeedMore();
  out = text_.substr(begin, i - begin);
  position_ = i;
  return !out.empty();
}

}  // namespace penstock::router::answer
