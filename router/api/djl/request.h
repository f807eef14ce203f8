// The body of POST /invocations as DJL's LMI defines it: names, types, defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/body.h"
#include "router/json/fields.h"

namespace penstock::router::djl {

// Defaults are the sequence scheduler's.
struct Parameters {
  std::uint32_t max_new_tokens = 30;
  std::uint32_t min_new_tokens = 0;
  std::optional<std::string> decoding_strategy;
  bool do_sample = false;
  float temperature = 1.0f;
  std::optional<std::int32_t> top_k;  // 4
  std::optional<float> top_p;         // 0.92 where top_k is off
  float penalty_alpha = 0.6f;
  float typical_p = 1.0f;
  float min_p = 0.0f;
  float repetition_penalty = 1.0f;
  float frequency_penalty = 0.0f;
  float presence_penalty = 0.0f;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop_sequences;
  std::vector<std::int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  bool ignore_eos_token = false;
  std::optional<bool> details;
  bool return_full_text = false;
  bool decoder_input_details = false;
  std::uint32_t top_n_tokens = 0;
  std::optional<std::uint32_t> truncate;
  std::optional<std::string> output_formatter;
  bool use_lru_kv_cache = false;  // a cached_prompt is cached without it, too
  std::uint32_t n = 1;
  std::uint32_t best_of = 1;
  std::uint32_t num_beams = 1;
  bool watermark = false;
};

// One string or several.
struct Inputs {
  std::vector<std::string> texts;
  bool list = false;
};

struct Request {
  Inputs inputs;
  Parameters parameters;
  bool stream = false;
  std::optional<std::string> cached_prompt;
  std::optional<Inputs> adapters;       // of each input, or one for all; "" is the model alone
  std::optional<std::string> adapter;   // of all inputs
  std::optional<json::Raw> model_name;  // taken, and without effect
};

bool ReadValue(json::Reader& reader, Parameters& out, std::string_view expected);
bool ReadValue(json::Reader& reader, Inputs& out, std::string_view expected);

Parsed<Request> ParseRequest(std::string_view body);

// The body as JSON schemas, members of an object of them.
void AppendRequestSchemas(std::string& out);

}  // namespace penstock::router::djl
