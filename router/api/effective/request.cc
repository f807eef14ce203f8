#include "router/api/effective/request.h"

#include <array>

#include "router/json/fields.h"
#include "router/json/schema.h"

namespace penstock::router::effective {
namespace {

using json::MakeField;

constexpr BodyRules kRules = {.limits = kPythonLimits, .strict = true, .to_error = FromJsonInWords};

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

Parsed<Request> ParseRequest(std::string_view body) {
  Parsed<Request> parsed = Parse(body, kRules, kFields, "an object with `prompt` and `num_tokens`");
  if (parsed.error) return parsed;
  if (parsed.request.prompt.empty()) {
    parsed.error = ApiError{ApiErrorKind::kValidation, "`prompt` must not be empty", "prompt"};
  } else if (parsed.request.num_tokens == 0) {
    parsed.error = ApiError{ApiErrorKind::kValidation, "`num_tokens` must be at least 1. Given: 0",
                            "num_tokens"};
  }
  return parsed;
}

}  // namespace penstock::router::effective
