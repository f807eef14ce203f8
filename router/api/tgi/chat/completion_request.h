// The body of TGI's completions (names, types, defaults).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/tgi/generate/request.h"
#include "router/json/fields.h"

namespace penstock::router::tgi {

struct Prompts {
  std::vector<std::string> texts;  // not empty
};

struct CompletionRequest {
  std::optional<std::string> model;
  Prompts prompt;
  std::optional<std::uint32_t> max_tokens;
  std::optional<float> temperature;
  std::optional<float> top_p;
  bool stream = false;
  std::optional<std::uint64_t> seed;
  std::optional<std::string> suffix;
  std::optional<float> repetition_penalty;
  std::optional<float> frequency_penalty;
  std::optional<std::vector<std::string>> stop;
};

bool ReadValue(json::Reader& reader, Prompts& out, std::string_view expected);

void AppendCompletionSchema(std::string& out);

Parsed<CompletionRequest> ParseCompletion(std::string_view body);

// One request for each prompt.
std::vector<Request> LowerCompletion(const CompletionRequest& completion);

}  // namespace penstock::router::tgi
