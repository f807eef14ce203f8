// Bodies of the three dialects and what their streamed events say. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tools/bench/load_options.h"

namespace penstock::bench {

std::string Target(Api api);
std::string RequestBody(const LoadOptions& config, std::string_view prompt);

// The id of the first model in the body of GET /v1/models; nullopt: the body has none.
std::optional<std::string> FirstModel(std::string_view body);

struct StreamEvent {
  bool is_token = false;  // carries generated text or a token
  bool is_error = false;
  bool is_done = false;                       // the end marker of the dialect
  std::optional<std::uint32_t> total_tokens;  // the server's own count, when the event has it
};

// `payload` is the text of one data line.
StreamEvent ReadEvent(Api api, std::string_view payload);

}  // namespace penstock::bench
