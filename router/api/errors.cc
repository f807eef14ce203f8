#include "router/api/errors.h"

#include <array>
#include <utility>

namespace penstock::router {
namespace {

using enum ApiErrorKind;

struct Row {
  ApiErrorKind kind;
  std::string_view name;
  int retry_after = 0;
};

constexpr std::array kTable = {
    Row{kValidation, "validation"},
    Row{kContextLength, "validation"},
    Row{kMalformedJson, "json"},
    Row{kWrongType, "type"},
    Row{kUnknownKey, "unknown_key"},
    Row{kContentType, "content_type"},
    Row{kTemplate, "template"},
    Row{kTool, "tool"},
    Row{kSuffix, "unsupported"},
    Row{kBatchSize, "validation"},
    Row{kUnsupported, "unsupported"},
    Row{kUnauthorized, "unauthorized"},
    Row{kNotFound, "not_found"},
    Row{kModelNotFound, "model_not_found"},
    Row{kMethodNotAllowed, "method"},
    Row{kTooLarge, "too_large"},
    Row{kBadRequest, "http"},
    Row{kTimeout, "timeout"},
    Row{kOverloaded, "overloaded", 1},
    Row{kBodyMemory, "overloaded", 1},
    Row{kUnavailable, "unavailable", 2},
    Row{kDraining, "unavailable", 2},
    Row{kNoShard, "unavailable", 2},
    Row{kDeadline, "deadline"},
    Row{kGeneration, "generation"},
    Row{kInternal, "internal"},
};

ApiErrorKind KindOf(const GenerationError& error) {
  // In the order of ErrorKind.
  constexpr ApiErrorKind kKinds[] = {kValidation, kTemplate,   kOverloaded, kUnavailable,
                                     kDraining,   kGeneration, kInternal};
  if (error.kind == ErrorKind::kValidation && error.length) return kContextLength;
  return kKinds[static_cast<std::size_t>(error.kind)];
}

// The path of the required key that is missing; empty if the error is another one.
std::string MissingKey(const json::Error& error) {
  constexpr std::string_view kMissing = "missing field `";
  if (!error.what.starts_with(kMissing)) return "";
  const std::string key =
      error.what.substr(kMissing.size(), error.what.rfind('`') - kMissing.size());
  return error.path.empty() ? key : error.path + "." + key;
}

// The reader's words for kinds of values and for the end of the text are serde's.
std::string_view KindName(std::string_view found) {
  if (found == "map") return "an object";
  return found == "sequence" ? "an array" : found;
}

std::string SyntaxInWords(const json::Error& error) {
  constexpr std::string_view kEnd = "EOF while parsing ";
  if (!error.what.starts_with(kEnd)) return error.Text();
  return "it ends within " + error.what.substr(kEnd.size()) + " (line " +
         std::to_string(error.line) + ", column " + std::to_string(error.column) + ")";
}

}  // namespace

std::string_view NameOf(ApiErrorKind kind) { return RowOf(kTable, kind).name; }

int RetryAfter(ApiErrorKind kind) { return RowOf(kTable, kind).retry_after; }

ApiError Invalid(std::string_view field, std::string_view why) {
  std::string message = "`";
  message.append(field).append("` ").append(why);
  return {kValidation, std::move(message), std::string(field)};
}

ApiError Unsupported(std::string_view field, std::string_view why) {
  ApiError error = Invalid(field, why);
  error.kind = kUnsupported;
  return error;
}

ApiError MustBe(std::string_view field, std::string_view limit, std::string_view given) {
  std::string why = "must be ";
  return Invalid(field, why.append(limit).append(". Given: ").append(given));
}

void RenameField(ApiError& error, std::string name) {
  const std::string from = "`" + error.field + "`";
  const std::string to = "`" + name + "`";
  std::string& text = error.message;
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  error.field = std::move(name);
}

ApiError FromEngine(const GenerationError& error) {
  return {KindOf(error), error.message, error.field};
}

ApiError FromHttp(const HttpFailure& failure) {
  switch (failure.status) {
    case 408:
      return {kTimeout, failure.message, ""};
    case 413:
      return {kTooLarge, failure.message, ""};
    case 503:
      return {kBodyMemory, failure.message, ""};
    default:
      return {kBadRequest, failure.message, ""};
  }
}

ApiError FromJson(const json::Error& error) {
  const bool syntax = error.kind == json::Error::Kind::kSyntax;
  return {syntax ? kMalformedJson : kWrongType, error.Text(), error.path};
}

ApiError FromJsonInWords(const json::Error& error) {
  if (error.kind == json::Error::Kind::kSyntax) {
    return {kMalformedJson, "the body is not valid JSON: " + SyntaxInWords(error), error.path};
  }
  ApiError wrong =
      MustBe(error.path.empty() ? "body" : error.path, error.expected, KindName(error.found));
  if (const std::string missing = MissingKey(error); !missing.empty()) {
    wrong = Invalid(missing, "is missing");
  } else if (error.expected.empty()) {
    wrong.message = error.path.empty() ? error.what : error.path + ": " + error.what;
  }
  wrong.kind = kWrongType;
  if (wrong.field == "body") wrong.field.clear();
  return wrong;
}

}  // namespace penstock::router
