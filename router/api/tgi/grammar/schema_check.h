// Whether a value is a JSON schema (draft 2020-12): the first keyword whose value is none that the
// meta-schema allows, in the words of the validator that TGI uses.
#pragma once

#include <optional>
#include <string>

#include "router/json/value.h"

namespace penstock::router::tgi {

std::optional<std::string> FindSchemaError(const json::Value& schema);

}  // namespace penstock::router::tgi
