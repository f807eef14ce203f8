// The body of POST /v1/responses. It is a chat whose messages, tools and format have other forms.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/openai/request.h"
#include "router/api/responses/item.h"

namespace penstock::router::responses {

// A function in the form of this route: flat.
struct FunctionTool {
  std::string name;
  std::optional<std::string> description;
  std::optional<json::Raw> parameters;
  bool strict = false;
};

// Tools of other types would run in the server. They are left out, and named among the keys
// without effect.
struct Tools {
  std::vector<FunctionTool> functions;
};

struct TextFormat {
  std::string type = "text";
  std::string name;
  bool strict = false;
  std::optional<json::Raw> schema;
};

struct TextOptions {
  TextFormat format;
};

struct Reasoning {
  std::optional<std::string> effort;
};

// What else the answer shall have.
struct Include {
  bool logprobs = false;
  bool encrypted_reasoning = false;
};

struct Request : openai::ChatRequest {
  std::optional<Input> input;
  std::string instructions;
  std::optional<std::string> previous_response_id;
  Tools function_tools;
  TextOptions text;
  Reasoning reasoning;
  Include include;
  bool store = true;
  std::optional<json::Raw> metadata;
  // Refused.
  bool background = false;
  std::optional<json::Raw> conversation;
  std::optional<json::Raw> prompt;

  bool WantsLogprobs() const { return include.logprobs || top_logprobs.value_or(0) > 0; }
};

bool ReadValue(json::Reader& reader, Tools& out, std::string_view expected);
bool ReadValue(json::Reader& reader, TextFormat& out, std::string_view expected);
bool ReadValue(json::Reader& reader, TextOptions& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Reasoning& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Include& out, std::string_view expected);

void AppendRequestSchema(std::string& out);

// `body` must outlive the result: raw values point into it.
Parsed<Request> ParseRequest(std::string_view body);

}  // namespace penstock::router::responses
