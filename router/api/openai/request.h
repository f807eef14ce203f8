// Bodies of chat/completions and completions. As the SDKs expect, null counts as absent, unknown
// keys are ignored and 1.0 counts as an integer. A wrong type is an error that names the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "router/api/body.h"
#include "router/engine.h"
#include "router/json/fields.h"

namespace penstock::router::openai {

struct Stop {
  std::vector<std::string> strings;  // from a string or an array
};

struct LogitBias {
  std::vector<SamplingParams::LogitBias> entries;
  std::string bad_key;  // the first key that is not a token id
};

struct EarlyStop {
  EarlyStopping rule = EarlyStopping::kEstimate;  // from a boolean or "never"
};

struct StreamOptions {
  bool include_usage = false;
};

// OpenAI's `json_schema`. The name and its like change nothing.
struct JsonSchemaFormat {
  std::string name;
  std::string description;
  bool strict = false;
  std::optional<json::Raw> schema;
};

// vLLM's structural tags: the output is any text; after a trigger a structure follows.
struct Structure {
  std::string begin;
  std::optional<json::Raw> schema;
  std::string end;
};
struct StructuralTag {
  std::vector<Structure> structures;
  std::vector<std::string> triggers;
};

// Beside the type `structural_tag` stand the keys of one.
struct ResponseFormat : StructuralTag {
  std::string type;
  std::optional<JsonSchemaFormat> json_schema;
  std::optional<json::Raw> schema;   // llama.cpp's, beside json_object
  std::optional<json::Raw> value;    // TGI's
  std::optional<json::Raw> grammar;  // of the type `grammar`
};

// vLLM's. One of them is given.
struct StructuredOutputs {
  std::optional<json::Raw> json;
  std::optional<json::Raw> regex;
  std::optional<json::Raw> choice;
  std::optional<json::Raw> grammar;
  std::optional<json::Raw> structural_tag;
  bool json_object = false;
};

// The keys that name a grammar: OpenAI's and vLLM's.
struct GrammarKeys {
  std::optional<ResponseFormat> response_format;
  std::optional<StructuredOutputs> structured_outputs;
  std::optional<json::Raw> guided_json;
  std::optional<json::Raw> guided_regex;
  std::optional<json::Raw> guided_choice;
  std::optional<json::Raw> guided_grammar;
};

// How bodies with OpenAI's errors are read.
extern const BodyRules kRules;

// What both routes take.
struct Common : GrammarKeys {
  std::string model;
  std::optional<std::uint32_t> max_tokens;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<std::uint32_t> n;
  Stop stop;
  bool stream = false;
  StreamOptions stream_options;
  std::optional<std::int64_t> seed;
  std::optional<float> frequency_penalty;
  std::optional<float> presence_penalty;
  LogitBias logit_bias;
  // Extensions that other servers have and benchmark tools send.
  std::optional<std::int32_t> top_k;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
  std::uint32_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::int32_t> stop_token_ids;
  std::optional<float> typical_p;
  std::optional<float> top_n_sigma;
  std::vector<std::string> bad_words;
  bool include_stop_str_in_output = false;
  std::optional<std::uint32_t> prompt_logprobs;
  std::optional<std::uint32_t> best_of;
  // vLLM's. The others must be absent or their defaults without the first.
  bool use_beam_search = false;
  float length_penalty = 1;
  EarlyStop early_stopping;
};

struct Messages {
  // The client's array, keys in its order; the parts of a list of text parts are joined.
  std::string json;
  std::size_t count = 0;
  std::vector<std::size_t> developer_roles;  // where "developer" stands in it

  // The array for a template that has no role `developer`: its messages become those of `system`.
  std::string WithSystemRoles() const;
};

struct ChatRequest : Common {
  Messages messages;
  std::optional<std::uint32_t> max_completion_tokens;
  bool logprobs = false;
  std::optional<std::uint32_t> top_logprobs;
  std::optional<json::Raw> tools;
  std::optional<json::Raw> tool_choice;
  std::optional<std::vector<std::string>> modalities;
  // Refused.
  std::optional<json::Raw> functions;
  std::optional<json::Raw> function_call;
  std::optional<json::Raw> audio;
  std::optional<json::Raw> moderation;
  std::optional<json::Raw> web_search_options;
  std::optional<json::Raw> chat_template;
  std::optional<json::Raw> chat_template_kwargs;
  std::optional<std::string> reasoning_effort;
  std::optional<std::int64_t> thinking_budget;
  bool parallel_tool_calls = true;
  bool add_generation_prompt = true;
};

using Prompt = std::variant<std::string, std::vector<TokenId>>;
struct Prompts {
  std::vector<Prompt> list;
};

struct CompletionRequest : Common {
  Prompts prompt;
  std::optional<std::uint32_t> logprobs;
  bool echo = false;
  std::string suffix;
};

// vLLM's: the tokens of a text or of a chat, and the text of tokens.
struct TokenizeRequest : ChatRequest {
  std::optional<std::string> prompt;
  std::optional<bool> add_special_tokens;  // absent: with a text, not with a chat
  bool return_token_strs = false;
  bool continue_final_message = false;  // refused
};

struct DetokenizeRequest {
  std::string model;
  std::vector<TokenId> tokens;
};

// Values that may have several JSON types. The field tables find these readers by
// argument-dependent lookup.
bool ReadValue(json::Reader& reader, Stop& out, std::string_view expected);
bool ReadValue(json::Reader& reader, LogitBias& out, std::string_view expected);
bool ReadValue(json::Reader& reader, StreamOptions& out, std::string_view expected);
bool ReadValue(json::Reader& reader, JsonSchemaFormat& out, std::string_view expected);
bool ReadValue(json::Reader& reader, std::vector<Structure>& out, std::string_view expected);
bool ReadValue(json::Reader& reader, StructuralTag& out, std::string_view expected);
bool ReadValue(json::Reader& reader, ResponseFormat& out, std::string_view expected);
bool ReadValue(json::Reader& reader, StructuredOutputs& out, std::string_view expected);
bool ReadValue(json::Reader& reader, EarlyStop& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Messages& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Prompts& out, std::string_view expected);

// The bodies as JSON schemas, members of an object of them.
void AppendRequestSchemas(std::string& out);

// `body` must outlive the result: raw values point into it.
Parsed<ChatRequest> ParseChat(std::string_view body);
Parsed<CompletionRequest> ParseCompletion(std::string_view body);
Parsed<TokenizeRequest> ParseTokenize(std::string_view body);
Parsed<DetokenizeRequest> ParseDetokenize(std::string_view body);

}  // namespace penstock::router::openai
