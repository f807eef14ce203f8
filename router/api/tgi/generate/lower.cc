#include "router/api/tgi/generate/lower.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace penstock::router::tgi {
namespace {

// A NaN fails these checks.
bool Positive(const std::optional<float>& value) { return !value || *value > 0.0f; }
bool InsideUnit(const std::optional<float>& value) {
  return !value || (*value > 0.0f && *value < 1.0f);
}

std::optional<ApiError> CheckSampling(const Parameters& p) {
  if (!Positive(p.temperature)) {
    return Invalid("temperature", "must be strictly positive");
  }
  if (!Positive(p.repetition_penalty)) {
    return Invalid("repetition_penalty", "must be strictly positive");
  }
  if (p.frequency_penalty && !(*p.frequency_penalty >= -2.0f && *p.frequency_penalty <= 2.0f)) {
    return Invalid("frequency_penalty", "must be >= -2.0 and <= 2.0");
  }
  if (!InsideUnit(p.top_p)) return Invalid("top_p", "must be > 0.0 and < 1.0");
  if (!InsideUnit(p.typical_p)) return Invalid("typical_p", "must be > 0.0 and < 1.0");
  if (p.top_k && *p.top_k <= 0) return Invalid("top_k", "must be strictly positive");
  return std::nullopt;
}

std::optional<ApiError> CheckStops(const ApiOptions& options, const Parameters& p) {
  if (p.stop.size() > options.max_stop_sequences) {
    return Invalid("stop", "supports up to " + std::to_string(options.max_stop_sequences) +
                               " stop sequences. Given: " + std::to_string(p.stop.size()));
  }
  return std::nullopt;
}

bool Samples(const Parameters& p) {
  return p.do_sample || p.temperature.value_or(1.0f) != 1.0f || p.top_k || p.top_p || p.typical_p;
}

std::optional<ApiError> CheckBestOf(const Parameters& p) {
  if (p.best_of.value_or(1) <= 1) return std::nullopt;
  if (!Samples(p) && !p.temperature) {  // any given one counts, 1.0 too
    return ApiError{ApiErrorKind::kValidation, "you must use sampling when `best_of` is > 1",
                    "best_of"};
  }
  return std::nullopt;
}

std::optional<ApiError> CheckRest(const ApiContext& context, const Request& request) {
  const Parameters& p = request.parameters;
  if (p.seed && p.best_of.value_or(1) > 1) {
    return Invalid("seed", "must not be set when `best_of` > 1");
  }
  if (p.top_n_tokens.value_or(0) > context.options.max_top_n_tokens) {
    return Invalid("top_n_tokens",
                   "must be >= 0 and <= " + std::to_string(context.options.max_top_n_tokens) +
                       ". Given: " + std::to_string(*p.top_n_tokens));
  }
  // The engine reports empty inputs. That error comes before an error of `truncate`.
  if (request.inputs.empty()) return std::nullopt;
  const std::uint32_t longest = context.engine.Facts().max_input_tokens;
  if (p.truncate && (*p.truncate == 0 || *p.truncate > longest)) {
    return Invalid("truncate", "must be strictly positive and less than " +
                                   std::to_string(longest) +
                                   ". Given: " + std::to_string(*p.truncate));
  }
  const ModelFacts facts = context.engine.Facts();
  if (p.watermark && !facts.has_watermark) {
    return Unsupported("watermark", "is not supported");
  }
  if (p.adapter_id && !facts.has_adapters && !facts.any_adapter) {
    return Unsupported("adapter_id", "is not supported");
  }
  return std::nullopt;
}

SamplingParams ToSampling(const Parameters& p) {
  SamplingParams sampling;
  sampling.watermark = p.watermark;
  sampling.do_sample = Samples(p);
  // TGI accepts a temperature of 1e39, which is infinite in binary32. The largest finite number has
  // the same effect.
  constexpr float kGreatest = std::numeric_limits<float>::max();
  sampling.temperature = std::min(p.temperature.value_or(1.0f), kGreatest);
  sampling.top_k = static_cast<std::uint32_t>(p.top_k.value_or(0));
  sampling.top_p = p.top_p.value_or(1.0f);
  sampling.typical_p = p.typical_p.value_or(1.0f);
  sampling.repetition_penalty = std::min(p.repetition_penalty.value_or(1.0f), kGreatest);
  sampling.frequency_penalty = p.frequency_penalty.value_or(0.0f);
  return sampling;
}

// Candidates of a request with penalty_alpha and no top_k, as in the papers.
constexpr std::uint32_t kUsualCandidates = 4;

// Penstock's own key makes `sampling` a contrastive search; alpha 0 leaves it as it is. What only
// sampling uses (temperature, top_p, …) is switched off, as in HF transformers; penalties stay.
std::optional<ApiError> AddContrastive(const ModelFacts& facts, const Parameters& p,
                                       SamplingParams& sampling) {
  if (!p.penalty_alpha.given) return std::nullopt;
  if (!p.penalty_alpha.value) return Invalid("penalty_alpha", "must be a number");
  const auto alpha = static_cast<float>(*p.penalty_alpha.value);
  if (!(alpha >= 0.0f && alpha <= 1.0f)) {
    return Invalid("penalty_alpha", "must be >= 0.0 and <= 1.0. Given: " + std::to_string(alpha));
  }
  if (alpha == 0.0f) return std::nullopt;
  if (facts.max_candidates == 0) {
    return Unsupported("penalty_alpha", "needs the server's option contrastive-search");
  }
  if (p.do_sample) {
    return Invalid("penalty_alpha",
                   "must be 0 when `do_sample` is true. Given: " + std::to_string(alpha));
  }
  const std::int64_t candidates =
      p.top_k ? *p.top_k : std::min(kUsualCandidates, facts.max_candidates);
  if (candidates < 1 || candidates > facts.max_candidates) {
    return Invalid("top_k", "must be >= 1 and <= " + std::to_string(facts.max_candidates) +
                                " with `penalty_alpha`. Given: " + std::to_string(candidates));
  }
  SamplingParams search;
  search.repetition_penalty = sampling.repetition_penalty;
  search.frequency_penalty = sampling.frequency_penalty;
  search.penalty_alpha = alpha;
  search.top_k = static_cast<std::uint32_t>(candidates);
  sampling = std::move(search);
  return std::nullopt;
}

LogprobRequest ToLogprobs(const Parameters& p, Mode mode) {
  LogprobRequest logprobs;
  const bool shown = mode == Mode::kStream || p.details || p.decoder_input_details;
  const bool ranked = p.best_of.value_or(1) > 1;
  if (shown || ranked) logprobs.kind = LogprobRequest::Kind::kProcessed;
  logprobs.top_n = p.top_n_tokens.value_or(0);
  logprobs.prompt_logprobs = p.decoder_input_details;
  return logprobs;
}

}  // namespace

std::uint32_t Candidates(const Request& request) {
  const std::uint64_t best_of = request.parameters.best_of.value_or(1);
  return best_of <= 1 ? 1 : static_cast<std::uint32_t>(best_of);
}

std::optional<ApiError> CheckBeforePermit(const ApiOptions& options, const Request& request,
                                          Mode mode) {
  const std::uint64_t best_of = request.parameters.best_of.value_or(1);
  if (mode == Mode::kStream) {
    if (best_of != 1) {
      return Invalid("best_of", "!= 1 is not supported when streaming tokens");
    }
    if (request.parameters.decoder_input_details) {
      return Invalid("decoder_input_details", "== true is not supported when streaming tokens");
    }
    return std::nullopt;
  }
  if (best_of <= 1) return std::nullopt;
  if (options.max_best_of == 1) {
    return Invalid("best_of", "!= 1 is not allowed for this endpoint");
  }
  if (best_of > options.max_best_of) {
    return Invalid("best_of", "must be > 0 and <= " + std::to_string(options.max_best_of) +
                                  ". Given: " + std::to_string(best_of));
  }
  return std::nullopt;
}

std::variant<std::vector<GenerationRequest>, ApiError> Lower(const ApiContext& context,
                                                             const Request& request, Mode mode,
                                                             const std::string& client_id) {
  const Parameters& p = request.parameters;
  if (auto error = CheckBestOf(p)) return *std::move(error);
  if (auto error = CheckSampling(p)) return *std::move(error);
  if (p.max_new_tokens && *p.max_new_tokens == 0) {
    return Invalid("max_new_tokens", "must be strictly positive");
  }
  if (auto error = CheckStops(context.options, p)) return *std::move(error);
  if (auto error = CheckRest(context, request)) return *std::move(error);

  GenerationRequest lowered;
  if (p.grammar) {
    const bool offered = context.options.grammar && context.engine.Facts().has_grammar;
    lowered.grammar = offered ? LowerGrammar(*p.grammar) : UnsupportedGrammar();
  }
  lowered.client_id = client_id;
  lowered.prompt = request.inputs;
  lowered.add_special_tokens = request.add_special_tokens;
  lowered.asked_sampling = p.do_sample;
  lowered.adapter_id = p.adapter_id;
  if (p.truncate) lowered.truncate = static_cast<std::uint32_t>(*p.truncate);
  lowered.max_new_tokens = p.max_new_tokens;
  lowered.stop = p.stop;
  lowered.sampling = ToSampling(p);
  if (auto error = AddContrastive(context.engine.Facts(), p, lowered.sampling))
    return *std::move(error);
  lowered.seed = p.seed;
  lowered.logprobs = ToLogprobs(p, mode);
  lowered.stop_rule = StopRule::kTokenEnd;
  lowered.decode_alone = true;
  lowered.request_class = RequestClass::kTgi;
  std::vector<GenerationRequest> candidates(Candidates(request), lowered);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].sampling.sibling = static_cast<std::uint32_t>(i);
  }
  return candidates;
}

}  // namespace penstock::router::tgi
