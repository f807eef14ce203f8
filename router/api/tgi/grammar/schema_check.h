// Checks the keywords of a JSON schema (draft 2020-12) that can change its regular expression. The
// texts are those of the validator that TGI uses.
#pragma once

#include <optional>
#include <string>

#include "router/json/value.h"

namespace penstock::router::tgi {

// The error of the first wrong keyword in a fixed order. nullopt: all keywords are right.
std::optional<std::string> FindSchemaError(const json::Value& schema);

}  // namespace penstock::router::tgi
