#include "router/api/body.h"

#include <string>
#include <utility>

namespace penstock::router {
namespace {

constexpr std::size_t kHeaderBytesMax = 512;

// Percent-encoded, so that any name fits a header and none has a comma.
std::string Encoded(std::string_view name) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    const auto byte = static_cast<unsigned char>(c);
    if (plain) {
      out += c;
    } else {
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return out;
}

std::string HeaderOf(const json::UnknownKeys& keys) {
  std::string value;
  for (const auto* names : {&keys.names, &keys.without_effect}) {
    for (const std::string& name : *names) {
      std::string next = (value.empty() ? "" : ",") + Encoded(name);
      if (value.size() + next.size() > kHeaderBytesMax) return value;
      value += next;
    }
  }
  return value;
}

ApiError UnknownKey(const json::UnknownKeys& keys) {
  ApiError error = Invalid(keys.names.front(), "is not a key that this server knows");
  error.kind = ApiErrorKind::kUnknownKey;
  if (!keys.nearest.empty()) error.message += ". Nearest: `" + keys.nearest + "`";
  return error;
}

}  // namespace

ApiError AsSent(ApiError error, const json::Reader::Aliases& aliases) {
  std::string field = error.field;
  for (const auto& [name, alias] : aliases) {
    if (field == name) field = alias;
    error.field = name;
    RenameField(error, std::string(alias));
  }
  error.field = std::move(field);
  return error;
}

bool AcceptKeys(ApiContext& context, std::string_view dialect, const ErrorFormat& errors,
                const json::UnknownKeys& keys, Exchange& exchange) {
  context.metrics.requests().UnknownKeys(dialect, keys.count);
  if (keys.count > 0 && context.options.strict_json) {
    RefuseRequest(context, exchange, errors, UnknownKey(keys));
    return false;
  }
  NameIgnoredKeys(context, keys, exchange);
  return true;
}

void NameIgnoredKeys(const ApiContext& context, const json::UnknownKeys& keys, Exchange& exchange) {
  if (keys.count == 0 && keys.without_effect.empty()) return;
  if (!context.dialects.fallback().NamesIgnoredKeys()) return;
  exchange.AddHeaders({{"x-penstock-ignored", HeaderOf(keys)}});
}

}  // namespace penstock::router
