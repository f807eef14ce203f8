// A JSON schema as the regular expression that TGI's router makes of it (the rules of Outlines'
// json_schema: blanks of at most one space, keys in the order of the schema).
#pragma once

#include <string>
#include <variant>

#include "router/json/value.h"

namespace penstock::router::tgi {

struct SchemaError {
  std::string message;
};

// References may not lead back to themselves: a schema that nests deeper than 64 is refused.
std::variant<std::string, SchemaError> SchemaToRegex(const json::Value& schema);

}  // namespace penstock::router::tgi
