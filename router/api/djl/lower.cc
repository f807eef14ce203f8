#include "router/api/djl/lower.h"

#include <utility>

#include "router/json/writer.h"

namespace penstock::router::djl {
namespace {

// DJL's defaults.
constexpr std::uint32_t kTopK = 4;
constexpr float kTopP = 0.92f;

template <class T>
std::string Shown(const T& value) {
  std::string text;
  json::Append(text, value);
  return text;
}

struct Range {
  std::string_view field;
  float value;
  bool holds;
  std::string_view limit;
};

// A NaN fails these checks.
std::optional<ApiError> CheckRanges(const Parameters& p) {
  const auto penalty = [](float value) { return value >= -2.0f && value <= 2.0f; };
  const auto share = [](float value) { return value > 0.0f && value <= 1.0f; };
  const float top_p = p.top_p.value_or(1.0f);
  const Range ranges[] = {
      {"temperature", p.temperature, p.temperature > 0.0f, "above 0"},
      {"top_p", top_p, share(top_p), "above 0 and at most 1"},
      {"typical_p", p.typical_p, share(p.typical_p), "above 0 and at most 1"},
      {"min_p", p.min_p, p.min_p >= 0.0f && p.min_p < 1.0f, "at least 0 and below 1"},
      {"penalty_alpha", p.penalty_alpha, p.penalty_alpha >= 0.0f && p.penalty_alpha <= 1.0f,
       "from 0 to 1"},
      {"repetition_penalty", p.repetition_penalty, p.repetition_penalty > 0.0f, "above 0"},
      {"frequency_penalty", p.frequency_penalty, penalty(p.frequency_penalty), "from -2 to 2"},
      {"presence_penalty", p.presence_penalty, penalty(p.presence_penalty), "from -2 to 2"},
  };
  for (const Range& range : ranges) {
    if (range.holds) continue;
    return MustBe(range.field, range.limit, Shown(range.value));
  }
  return std::nullopt;
}

std::optional<ApiError> CheckCounts(const ApiOptions& options, const Parameters& p) {
  if (p.max_new_tokens == 0) return MustBe("max_new_tokens", "at least 1", "0");
  if (p.min_new_tokens > p.max_new_tokens) {
    return MustBe("min_new_tokens", "at most `max_new_tokens`, " + std::to_string(p.max_new_tokens),
                  std::to_string(p.min_new_tokens));
  }
  if (p.stop_sequences.size() > options.max_stop_sequences) {
    return MustBe("stop_sequences",
                  "at most " + std::to_string(options.max_stop_sequences) + " strings",
                  std::to_string(p.stop_sequences.size()));
  }
  for (const std::string& stop : p.stop_sequences) {
    if (stop.empty()) return MustBe("stop_sequences", "strings that are not empty", "\"\"");
  }
  if (p.top_n_tokens > options.max_top_n_tokens) {
    return MustBe("top_n_tokens", "at most " + std::to_string(options.max_top_n_tokens),
                  std::to_string(p.top_n_tokens));
  }
  const std::pair<std::string_view, std::uint32_t> alone[] = {
      {"n", p.n}, {"best_of", p.best_of}, {"num_beams", p.num_beams}};
  for (const auto& [name, count] : alone) {
    if (count > 1) return MustBe(name, "1", std::to_string(count));
  }
  return std::nullopt;
}

// The adapter of the input with this index.
std::optional<std::string> AdapterOf(const Request& request, std::size_t input) {
  std::string name = request.adapter.value_or("");
  if (request.adapters) name = request.adapters->texts[request.adapters->list ? input : 0];
  return name.empty() ? std::nullopt : std::optional(name);
}

// Refuses what would fit no prompt, before a prompt is tokenized.
std::optional<ApiError> CheckOffered(const ModelFacts& facts, const Request& request) {
  const std::uint32_t most = facts.max_total_tokens;
  if (request.parameters.max_new_tokens >= most) {
    return MustBe("max_new_tokens",
                  "below " + std::to_string(most) + ", the most tokens of prompt and answer",
                  std::to_string(request.parameters.max_new_tokens));
  }
  if (request.adapters && request.adapter)
    return MustBe("adapter", "absent beside `adapters`", "both");
  if ((request.adapters || request.adapter) && !facts.has_adapters) {
    return Unsupported(request.adapter ? "adapter" : "adapters", "are not served");
  }
  if (request.adapters && request.adapters->list &&
      request.adapters->texts.size() != request.inputs.texts.size()) {
    return MustBe("adapters", "a string, or a list with one for each of `inputs`",
                  std::to_string(request.adapters->texts.size()));
  }
  if (request.parameters.watermark && !facts.has_watermark) {
    return Unsupported("watermark", "is not offered");
  }
  return std::nullopt;
}

// As in DJL, do_sample overrides the strategy.
std::variant<SamplingParams, ApiError> ToSampling(const DjlOptions& options, const Parameters& p) {
  const std::string strategy =
      p.do_sample ? "sample" : p.decoding_strategy.value_or(options.decoding_strategy);
  SamplingParams sampling;
  sampling.repetition_penalty = p.repetition_penalty;
  sampling.frequency_penalty = p.frequency_penalty;
  sampling.presence_penalty = p.presence_penalty;
  if (strategy == "greedy") return sampling;
  if (strategy == "contrastive") {
    const std::int32_t candidates = p.top_k.value_or(kTopK);
    if (candidates < 1) {
      return MustBe("top_k", "at least 1 for contrastive search", std::to_string(candidates));
    }
    // Without a penalty or a second candidate it is greedy search.
    if (p.penalty_alpha == 0.0f || candidates == 1) return sampling;
    sampling.penalty_alpha = p.penalty_alpha;
    sampling.top_k = static_cast<std::uint32_t>(candidates);
    return sampling;
  }
  if (strategy != "sample" && strategy != "sampling") {
    return MustBe("decoding_strategy", "greedy, sample or contrastive",
                  Shown(strategy.substr(0, 100)));
  }
  sampling.do_sample = true;
  sampling.temperature = p.temperature;
  sampling.typical_p = p.typical_p;
  sampling.min_p = p.min_p;
  // top_p alone means nucleus sampling. DJL would apply its top_k of 4 first.
  const bool nucleus = p.top_p && !p.top_k;
  const std::int32_t top_k = nucleus ? 0 : p.top_k.value_or(kTopK);
  sampling.top_k = top_k > 0 ? static_cast<std::uint32_t>(top_k) : 0;
  sampling.top_p = p.top_p.value_or(top_k > 0 ? 1.0f : kTopP);
  return sampling;
}

bool HasDetails(const DjlOptions& options, const Parameters& p) {
  return p.details.value_or(options.tgi_compat);
}

}  // namespace

std::variant<Formatter, ApiError> FormatterOf(const DjlOptions& options, const Request& request) {
  std::string name = request.parameters.output_formatter.value_or(options.output_formatter);
  if (name == "auto" && request.stream) name = options.tgi_compat ? "sse" : "jsonlines";
  if (name == "auto" || name == "json") return Formatter::kJson;
  if (name == "jsonlines") return Formatter::kJsonLines;
  if (name == "sse") return Formatter::kSse;
  return MustBe("output_formatter", "json, jsonlines or sse", Shown(name.substr(0, 100)));
}

std::variant<std::vector<GenerationRequest>, ApiError> Lower(const ApiContext& context,
                                                             const DjlOptions& options,
                                                             const Request& request,
                                                             const std::string& client_id) {
  const Parameters& p = request.parameters;
  if (request.inputs.texts.empty()) {
    return MustBe("inputs", "a string or a list with at least one", "[]");
  }
  if (request.inputs.texts.size() > options.max_inputs) {
    return MustBe("inputs", "a list of at most " + std::to_string(options.max_inputs) + " strings",
                  std::to_string(request.inputs.texts.size()));
  }
  const std::uint32_t most = context.options.max_concurrent_requests;
  if (request.inputs.texts.size() > most) {  // no later time would do
    return ApiError{ApiErrorKind::kValidation,
                    "`inputs` must have at most " + std::to_string(most) +
                        " entries: so many requests run and wait at the same time. Given: " +
                        std::to_string(request.inputs.texts.size()),
                    "inputs"};
  }
  if (auto error = CheckRanges(p)) return *std::move(error);
  if (auto error = CheckCounts(context.options, p)) return *std::move(error);
  if (auto error = CheckOffered(context.engine.Facts(), request)) return *std::move(error);
  auto sampling = ToSampling(options, p);
  if (auto* error = std::get_if<ApiError>(&sampling)) return std::move(*error);

  GenerationRequest lowered;
  lowered.client_id = client_id;
  lowered.truncate = p.truncate;
  lowered.max_new_tokens = p.max_new_tokens;
  lowered.exact_length = true;
  lowered.min_new_tokens = p.min_new_tokens;
  lowered.stop = p.stop_sequences;
  lowered.stop_token_ids.assign(p.stop_token_ids.begin(), p.stop_token_ids.end());
  lowered.ignore_eos = p.ignore_eos_token;
  lowered.sampling = std::get<SamplingParams>(std::move(sampling));
  lowered.seed = p.seed;
  lowered.asked_sampling = p.do_sample;
  lowered.sampling.watermark = p.watermark;
  if (p.include_stop_str_in_output) lowered.stop_rule = StopRule::kTokenEnd;
  lowered.request_class = RequestClass::kDjl;
  const auto formatter = FormatterOf(options, request);
  const bool streams = std::holds_alternative<Formatter>(formatter) &&
                       std::get<Formatter>(formatter) != Formatter::kJson;
  if (streams || HasDetails(options, p) || p.decoder_input_details) {
    lowered.logprobs.kind = LogprobRequest::Kind::kProcessed;
  }
  lowered.logprobs.top_n = p.top_n_tokens;
  lowered.logprobs.prompt_logprobs = p.decoder_input_details;

  std::vector<GenerationRequest> candidates(request.inputs.texts.size(), lowered);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].prompt = request.inputs.texts[i];
    candidates[i].adapter_id = AdapterOf(request, i);
    candidates[i].cached_prompt = request.cached_prompt.value_or("");
    candidates[i].sampling.sibling = static_cast<std::uint32_t>(i);
  }
  return candidates;
}

}  // namespace penstock::router::djl
