#include "router/api/media_type.h"

#include <cstddef>

#include "router/http/text.h"

namespace penstock::router {
namespace {

bool IsTokenChar(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kMarks.find(c) != std::string_view::npos;
}

// Takes the token at the front of `text`; empty where there is none.
std::string_view TakeToken(std::string_view& text) {
  std::size_t size = 0;
  while (size < text.size() && IsTokenChar(text[size])) ++size;
  const std::string_view token = text.substr(0, size);
  text.remove_prefix(size);
  return token;
}

bool TakeChar(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// Takes a quoted value and the end of its parameter.
bool TakeQuoted(std::string_view& text) {
  const std::size_t end = text.find('"', 1);  // a quote right after the first is a part of the text
  if (end == std::string_view::npos) return false;
  for (const char c : text.substr(0, end)) {
    if (c < ' ' || c > '~') return false;
  }
  text.remove_prefix(end + 1);
  while (TakeChar(text, ' ')) continue;
  return text.empty() || TakeChar(text, ';');
}

bool TakeParameter(std::string_view& text) {
  if (TakeToken(text).empty() || !TakeChar(text, '=')) return false;
  if (TakeChar(text, '"')) return TakeQuoted(text);
  const std::string_view value = TakeToken(text);
  return text.empty() || (!value.empty() && TakeChar(text, ';'));
}

}  // namespace

bool IsJson(std::string_view content_type) {
  std::string_view rest = content_type;
  const std::string_view type = TakeToken(rest);
  if (!EqualsIgnoreCase(type, "application") || !TakeChar(rest, '/')) return false;
  const std::string_view subtype = TakeToken(rest);
  if (!rest.empty() && !TakeChar(rest, ';')) return false;
  while (!rest.empty()) {
    if (!TakeChar(rest, ' ') && !TakeParameter(rest)) return false;
  }
  const std::size_t plus = subtype.find_last_of('+');
  if (plus == std::string_view::npos || plus == 0) return EqualsIgnoreCase(subtype, "json");
  return EqualsIgnoreCase(subtype.substr(0, plus), "json") ||
         EqualsIgnoreCase(subtype.substr(plus + 1), "json");
}

}  // namespace penstock::router
