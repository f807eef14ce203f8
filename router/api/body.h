// Reading the body of a request by its dialect's field table.
#pragma once

#include <optional>
#include <string_view>

#include "router/api/errors.h"
#include "router/api/run.h"
#include "router/json/fields.h"

namespace penstock::router {

template <class T>
struct Parsed {
  std::optional<ApiError> error;
  T request;
  json::UnknownKeys unknown_keys;
  json::Reader::Aliases aliases;
};

// `error` with the names under which the client sent its keys.
ApiError AsSent(ApiError error, const json::Reader::Aliases& aliases);

struct BodyRules {
  json::Limits limits;
  bool strict = false;  // an object with nothing after it; else [] counts as {}, as in serde
  ApiError (*to_error)(const json::Error&) = FromJson;
};

// Bodies as a server in Python reads them: null counts as absent, and 30.0 as 30.
inline constexpr json::Limits kPythonLimits = {.null_is_absent = true, .integral_floats = true};

// Raw values of the result point into `body`. `type` is the body's name in errors.
template <class T, std::size_t N>
Parsed<T> Parse(std::string_view body, const BodyRules& rules,
                const std::array<json::Field<T>, N>& fields, std::string_view type) {
  Parsed<T> parsed;
  json::Reader reader(body, rules.limits);
  const bool ok = rules.strict && !reader.NextIs('{')
                      ? reader.FailNext(type)
                      : json::ReadObject<T>(reader, fields, parsed.request, type) &&
                            (!rules.strict || reader.AtEnd());
  parsed.unknown_keys = reader.unknown_keys();
  if (!ok) {
    parsed.error = rules.to_error(reader.error());
    json::Reader again(body, rules.limits);  // for the keys after the error
    json::FindUnknownKeys<T>(again, fields);
    parsed.unknown_keys.AddNew(again.unknown_keys());
  }
  parsed.aliases = reader.aliases();
  return parsed;
}

// Counts unknown keys, or refuses them under --strict-json. A header of the answer names all keys
// that were ignored. False: they were refused, and that was answered.
bool AcceptKeys(ApiContext& context, std::string_view dialect, const ErrorFormat& errors,
                const json::UnknownKeys& keys, Exchange& exchange);

// Names keys that were ignored in a header of the answer. With the tgi profile, nothing.
void NameIgnoredKeys(const ApiContext& context, const json::UnknownKeys& keys, Exchange& exchange);

// Counts a request to `route` and its unknown keys. False: its body was wrong, and that was
// answered, with the names of the unknown keys: one of them may be the cause.
template <class T>
bool Accept(ApiContext& context, std::string_view route, std::string_view dialect,
            const ErrorFormat& errors, const Parsed<T>& parsed, Exchange& exchange) {
  context.metrics.requests().Arrived(route);
  if (!parsed.error) return AcceptKeys(context, dialect, errors, parsed.unknown_keys, exchange);
  context.metrics.requests().UnknownKeys(dialect, parsed.unknown_keys.count);
  NameIgnoredKeys(context, parsed.unknown_keys, exchange);
  RefuseRequest(context, exchange, errors, *parsed.error);
  return false;
}

}  // namespace penstock::router
