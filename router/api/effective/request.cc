#include "router/api/effective/request.h"

#include <array>
#include <span>

#include "router/json/fields.h"
#include "router/json/schema.h"

namespace penstock::router::effective {
namespace {

using json::MakeField;

constexpr auto kFields = std::array{
    MakeField<&Request::prompt>("prompt", "a string", true),
    MakeField<&Request::num_tokens>("num_tokens", "an integer from 1", true),
    MakeField<&Request::seed>("seed", "an integer that is not negative"),
    MakeField<&Request::details>("details", "a boolean"),
    MakeField<&Request::intended_arrival_ms>("intended_arrival_ms",
                                             "milliseconds since 1970 as an integer"),
};

}  // namespace

void AppendRequestSchema(std::string& out) {
  json::AppendSchema<Request>(out, "InferenceRequest", kFields);
}

Parsed ParseRequest(std::string_view body) {
  Parsed parsed;
  json::Reader reader(body, {.null_is_absent = true, .integral_floats = true});
  constexpr std::string_view kExpected = "an object with `prompt` and `num_tokens`";
  const bool read = reader.NextIs('{')
                        ? json::ReadObject(reader, std::span<const json::Field<Request>>(kFields),
                                           parsed.request, kExpected) &&
                              reader.AtEnd()
                        : reader.FailNext(kExpected);
  parsed.unknown_keys = reader.unknown_keys();
  if (!read) {
    const bool syntax = reader.error().kind == json::Error::Kind::kSyntax;
    parsed.error = ApiError{syntax ? ApiErrorKind::kMalformedJson : ApiErrorKind::kWrongType,
                            reader.error().Text(), reader.error().path};
  } else if (parsed.request.prompt.empty()) {
    parsed.error = ApiError{ApiErrorKind::kValidation, "`prompt` must not be empty", "prompt"};
  } else if (parsed.request.num_tokens == 0) {
    parsed.error = ApiError{ApiErrorKind::kValidation, "`num_tokens` must be at least 1. Given: 0",
                            "num_tokens"};
  }
  return parsed;
}

}  // namespace penstock::router::effective
