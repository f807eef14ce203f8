// The body of SGLang's generate. null counts as absent, and unknown keys are ignored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/body.h"
#include "router/api/openai/request.h"
#include "router/engine.h"
#include "router/json/fields.h"

namespace penstock::router::sglang {

// One value for all prompts, or a list with a value for each.
template <class T>
struct PerPrompt {
  std::deque<T> values;  // empty: absent
  bool listed = false;

  const T& Of(std::size_t prompt, const T& otherwise) const {
    if (values.empty()) return otherwise;
    return listed ? values[prompt] : values.front();
  }
};

struct Sampling {
  std::optional<std::uint32_t> max_new_tokens;  // 128; 0: the prompt alone is computed
  std::uint32_t min_new_tokens = 0;
  std::uint32_t n = 1;
  openai::Stop stop;
  std::vector<std::int32_t> stop_token_ids;
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<std::int32_t> top_k;
  std::optional<float> min_p;
  std::optional<float> frequency_penalty;
  std::optional<float> presence_penalty;
  std::optional<float> repetition_penalty;
  bool ignore_eos = false;
  bool no_stop_trim = false;
  std::optional<std::int64_t> sampling_seed;
  openai::LogitBias logit_bias;
  // At most one is given. An empty string is none.
  std::optional<json::Raw> regex;
  std::optional<json::Raw> json_schema;
  std::optional<json::Raw> ebnf;
  std::optional<json::Raw> structural_tag;
  // Refused.
  openai::Stop stop_regex;
  std::uint32_t beam_width = 1;
};

// A prompt as token ids, or a list of them.
struct TokenPrompts {
  std::vector<std::vector<TokenId>> list;
  bool listed = false;
};

struct Request {
  PerPrompt<std::string> text;
  TokenPrompts input_ids;
  PerPrompt<Sampling> sampling_params;
  PerPrompt<std::string> rid;
  PerPrompt<bool> return_logprob;
  PerPrompt<std::int64_t> logprob_start_len;  // -1: no log-probabilities of the prompt
  PerPrompt<std::uint32_t> top_logprobs_num;
  PerPrompt<std::optional<std::string>> lora_path;  // the name of an adapter
  bool return_text_in_logprobs = false;
  bool stream = false;
  // Refused.
  std::optional<json::Raw> input_embeds;
  std::optional<json::Raw> image_data;
  std::optional<json::Raw> video_data;
  std::optional<json::Raw> audio_data;
  std::optional<json::Raw> token_ids_logprob;
  std::optional<json::Raw> session_params;
  std::optional<json::Raw> custom_logit_processor;
  bool return_hidden_states = false;

  bool tokens() const { return text.values.empty(); }
  std::size_t prompts() const { return tokens() ? input_ids.list.size() : text.values.size(); }
  bool listed() const { return tokens() ? input_ids.listed : text.listed; }
};

// The states whose text was appended to another one.
struct ConcatenateRequest {
  std::vector<std::string> src_rids;
  std::string dst_rid;
};

// The field tables find these readers by argument-dependent lookup.
bool ReadValue(json::Reader& reader, Sampling& out, std::string_view expected);
bool ReadValue(json::Reader& reader, TokenPrompts& out, std::string_view expected);

// Of the elements of a list, for errors.
template <class T>
constexpr std::string_view kOneOf = json::kElementExpected<T>;
template <>
inline constexpr std::string_view kOneOf<bool> = "a boolean";
template <>
inline constexpr std::string_view kOneOf<std::int64_t> = "an integer";
template <>
inline constexpr std::string_view kOneOf<std::uint32_t> = "an integer that is not negative";
template <>
inline constexpr std::string_view kOneOf<std::optional<std::string>> = "a string or null";
template <>
inline constexpr std::string_view kOneOf<Sampling> = "an object";

template <class T>
bool ReadValue(json::Reader& reader, PerPrompt<T>& out, std::string_view expected) {
  using json::ReadValue;
  if (!reader.NextIs('[')) return ReadValue(reader, out.values.emplace_back(), expected);
  out.listed = true;
  if (!reader.EnterArray(expected)) return false;
  while (reader.NextElement()) {
    if (!ReadValue(reader, out.values.emplace_back(), kOneOf<T>)) return false;
  }
  return reader.ok();
}

// Whether a body of the shared path is SGLang's: it has `text`, `input_ids` or `input_embeds`, and
// no `inputs`, which is TGI's.
bool IsGenerateBody(std::string_view body);

// The bodies as JSON schemas, members of an object of them.
void AppendRequestSchemas(std::string& out);

// `body` must outlive the result: raw values point into it.
Parsed<Request> ParseGenerate(std::string_view body);
Parsed<ConcatenateRequest> ParseConcatenate(std::string_view body);

}  // namespace penstock::router::sglang
