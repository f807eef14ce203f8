// The body of generate, generate_stream and / as TGI defines it (names, types, defaults).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/body.h"
#include "router/api/tgi/grammar/grammar.h"
#include "router/json/fields.h"

namespace penstock::router::tgi {

// A key that TGI does not have: any value is taken, and judged later if it counts.
struct ExtensionNumber {
  bool given = false;
  std::optional<double> value;  // none: it is no number
};

struct Parameters {
  std::optional<std::uint64_t> best_of;
  std::optional<float> temperature;
  std::optional<float> repetition_penalty;
  std::optional<float> frequency_penalty;
  std::optional<std::int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> typical_p;
  bool do_sample = false;
  std::optional<std::uint32_t> max_new_tokens;
  std::optional<bool> return_full_text;
  std::vector<std::string> stop;
  std::optional<std::uint64_t> truncate;
  bool watermark = false;
  bool details = false;
  bool decoder_input_details = false;
  std::optional<std::uint64_t> seed;
  std::optional<std::uint32_t> top_n_tokens;
  std::optional<GrammarChoice> grammar;
  std::optional<std::string> adapter_id;
  ExtensionNumber penalty_alpha;
};

struct Request {
  std::string inputs;
  // TGI samples when `parameters` is absent, and is greedy when it is present without do_sample.
  Parameters parameters = {.do_sample = true};
  bool stream = false;             // POST / only
  bool add_special_tokens = true;  // not in the body: chats bring theirs in the template
};

// For the field table of Parameters.
bool ReadValue(json::Reader& reader, ExtensionNumber& out, std::string_view expected);

// For the field table of Request.
bool ReadValue(json::Reader& reader, Parameters& out, std::string_view expected);

// serde_json's bound of nesting.
inline constexpr json::Limits kLimits = {.depth = 127};

// JSON schemas, members of an object of them.
void AppendGenerateSchemas(std::string& out);

// `compat`: the body has `stream`.
Parsed<Request> ParseRequest(std::string_view body, bool compat);

}  // namespace penstock::router::tgi
