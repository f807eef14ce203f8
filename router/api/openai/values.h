// Readers of values that may have several JSON types. The field tables find them by
// argument-dependent lookup.
#pragma once

#include <string_view>

#include "router/api/openai/request.h"
#include "router/json/reader.h"

namespace penstock::router::openai {

bool ReadValue(json::Reader& reader, Stop& out, std::string_view expected);
bool ReadValue(json::Reader& reader, LogitBias& out, std::string_view expected);
bool ReadValue(json::Reader& reader, StreamOptions& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Messages& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Prompts& out, std::string_view expected);

}  // namespace penstock::router::openai
