#include "router/answer/bodies/typed_value.h"

#include "router/answer/bodies/json_text.h"
#include "router/answer/bodies/literal_reader.h"
#include "router/answer/cursor.h"
#include "router/json/reader.h"

namespace penstock::router::answer {
namespace {

std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

ParameterTypes TypeOf(std::string_view json) {
  switch (json.front()) {
    case '"':
      return kString;
    case '{':
      return kObject;
    case '[':
      return kArray;
    case 't':
    case 'f':
      return kBoolean;
    default:
      return json.front() == 'n' ? kNull : kNumber;
  }
}

bool IsJson(std::string_view text) {
  json::Reader reader(text);
  return reader.Skip() && reader.AtEnd();
}

// The value that `text` is as a literal; empty if it is none.
std::string AsLiteral(std::string_view text) {
  LiteralReader reader(LiteralReader::Begin::kValue);
  std::string json;
  const bool whole = reader.Take(text, true, json) == text.size();
  return whole && reader.done() ? json : "";
}

}  // namespace

std::string TypedValue(std::string_view text, ParameterTypes types) {
  const std::string_view trimmed = WithoutBlanks(text);
  const bool string_allowed = (types & kString) != 0;
  if (!trimmed.empty() && types != kString) {
    std::string json;
    if (IsJson(trimmed)) {
      json = trimmed;
    } else if (!string_allowed) {
      json = AsLiteral(trimmed);
    }
    if (!json.empty() && TypeOf(json) != kString && (types & TypeOf(json)) != 0) return json;
  }
  std::string quoted = "\"";
  AppendEscaped(quoted, text);
  return quoted + '"';
}

}  // namespace penstock::router::answer
