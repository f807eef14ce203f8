#include "shard/service/start_checks.h"

#include <limits>
#include <string>

#include "common/status.h"

namespace penstock::shard {
namespace {

// False for NaN.
bool Within(float value, float low, float high) { return value >= low && value <= high; }

bool Above0(float value, float high) { return value > 0 && value <= high; }

absl::Status CheckSampling(const char* field, float value, bool good, const char* limit) {
  if (good) return absl::OkStatus();
  return BadValue(std::string("starts.sampling.") + field, std::to_string(value), limit);
}

absl::Status CheckContrastive(const SamplingParams& params, std::uint32_t max_candidates) {
  if (params.penalty_alpha == 0) return absl::OkStatus();
  const char* const field = "penalty_alpha";
  PENSTOCK_RETURN_IF_ERROR(
      CheckSampling(field, params.penalty_alpha, max_candidates > 0,
                    "0: contrastive search needs the option --contrastive-search"));
  PENSTOCK_RETURN_IF_ERROR(CheckSampling(field, params.penalty_alpha,
                                         Within(params.penalty_alpha, 0, 1), "from 0 to 1"));
  PENSTOCK_RETURN_IF_ERROR(
      CheckSampling(field, params.penalty_alpha, !params.do_sample, "0 with do_sample"));
  if (params.top_k >= 1 && params.top_k <= max_candidates) return absl::OkStatus();
  return BadValue(
      "starts.sampling.top_k", std::to_string(params.top_k),
      "from 1 to max_candidates " + std::to_string(max_candidates) + " with penalty_alpha");
}

}  // namespace

absl::Status Bad(const char* field, std::uint64_t value, const std::string& limit) {
  return BadValue(field, std::to_string(value), limit);
}

absl::Status CheckTokens(const std::vector<TokenId>& tokens, std::uint32_t vocabulary,
                         const char* field) {
  for (TokenId token : tokens) {
    if (token < 0 || static_cast<std::uint32_t>(token) >= vocabulary) {
      return BadValue(field, std::to_string(token),
                      "token ids from 0 to " + std::to_string(vocabulary - 1));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSampling(const SamplingParams& params, std::uint32_t vocabulary,
                           std::uint32_t max_candidates) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const struct {
    const char* field;
    float value;
    bool good;
    const char* limit;
  } checks[] = {
      {"temperature", params.temperature, Above0(params.temperature, kMost), "above 0"},
      {"top_p", params.top_p, Above0(params.top_p, 1), "above 0 and at most 1"},
      {"typical_p", params.typical_p, Above0(params.typical_p, 1), "above 0 and at most 1"},
      {"min_p", params.min_p, Within(params.min_p, 0, 1) && params.min_p < 1, "from 0 to below 1"},
      {"top_n_sigma", params.top_n_sigma, Within(params.top_n_sigma, 0, kMost), "at least 0"},
      {"repetition_penalty", params.repetition_penalty, Above0(params.repetition_penalty, kMost),
       "above 0"},
      {"frequency_penalty", params.frequency_penalty, Within(params.frequency_penalty, -2, 2),
       "from -2 to 2"},
      {"presence_penalty", params.presence_penalty, Within(params.presence_penalty, -2, 2),
       "from -2 to 2"},
  };
  for (const auto& [field, value, good, limit] : checks) {
    PENSTOCK_RETURN_IF_ERROR(CheckSampling(field, value, good, limit));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckContrastive(params, max_candidates));
  for (const SamplingParams::LogitBias& bias : params.logit_bias) {
    PENSTOCK_RETURN_IF_ERROR(CheckTokens({bias.token}, vocabulary, "starts.sampling.bias_tokens"));
    PENSTOCK_RETURN_IF_ERROR(
        CheckSampling("bias_values", bias.bias, Within(bias.bias, -100, 100), "from -100 to 100"));
  }
  for (const std::vector<TokenId>& word : params.bad_words) {
    if (word.empty()) return Bad("starts.sampling.bad_words", 0, "at least one token long");
    PENSTOCK_RETURN_IF_ERROR(CheckTokens(word, vocabulary, "starts.sampling.bad_words"));
  }
  return absl::OkStatus();
}

absl::Status CheckStart(const SequenceStart& start, const PlanBounds& bounds) {
  if (start.prompt.empty()) return Bad("starts.prompt", 0, "at least one token long");
  if (start.prompt_length != start.prompt.size()) {
    return Bad("starts.prompt_length", start.prompt_length,
               std::to_string(start.prompt.size()) + ", the number of prompt tokens");
  }
  if (start.prompt_length > bounds.max_sequence_length) {
    return Bad("starts.prompt_length", start.prompt_length,
               "at most max_sequence_length " + std::to_string(bounds.max_sequence_length));
  }
  if (start.cached_length >= start.prompt_length) {
    return Bad("starts.cached_length", start.cached_length,
               "below prompt_length " + std::to_string(start.prompt_length));
  }
  if (start.cached_length > 0 && !bounds.prefixes && bounds.snapshots == 0) {
    return Bad("starts.cached_length", start.cached_length,
               "0: the model has states, and the group no snapshots");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckTokens(start.prompt, bounds.vocabulary, "starts.prompt"));
  PENSTOCK_RETURN_IF_ERROR(
      CheckTokens(start.stop_token_ids, bounds.vocabulary, "starts.stop_token_ids"));
  for (const std::uint32_t top_n :
       {start.logprobs.top_n, start.logprobs.prompt_top_n.value_or(0)}) {
    if (top_n <= bounds.vocabulary) continue;
    return Bad("starts.logprobs.top_n", top_n,
               "at most the vocabulary " + std::to_string(bounds.vocabulary));
  }
  if (!start.grammar.empty() && !bounds.grammars) {
    return Bad("starts.grammar", start.grammar.source.size(), "empty: grammars are not offered");
  }
  if (start.sampling.watermark && !bounds.watermarks) {
    return Bad("starts.sampling.watermark", 1, "false: watermarks are not offered");
  }
  if (!start.adapter_id.empty() && !bounds.adapters) {
    return BadValue("starts.adapter_id", start.adapter_id, "empty: adapters are not offered");
  }
  return CheckSampling(start.sampling, bounds.vocabulary, bounds.max_candidates);
}

}  // namespace penstock::shard
