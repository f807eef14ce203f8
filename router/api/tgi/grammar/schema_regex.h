// Translates a JSON schema into the regular expression that TGI's router makes of it. The rules are
// those of Outlines' json_schema: at most one space between tokens, keys in the schema's order.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "router/json/value.h"

namespace penstock::router::tgi {

// A schema that nests deeper than 64 is refused, and so is one whose references form a cycle. The
// error is TGI's text.
absl::StatusOr<std::string> SchemaToRegex(const json::Value& schema);

}  // namespace penstock::router::tgi
