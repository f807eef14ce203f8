#include <cmath>
#include <string>

#include "common/status.h"
#include "shard/service/plan_checker.h"

namespace penstock::shard {
namespace {

// False for NaN as well.
bool Within(float value, float low, float high) { return value >= low && value <= high; }

absl::Status CheckRange(const char* field, float value, bool good, const char* limit) {
  if (good) return absl::OkStatus();
  return BadValue(field, std::to_string(value), limit);
}

}  // namespace

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

absl::Status CheckSampling(const SamplingParams& params, std::uint32_t vocabulary) {
  PENSTOCK_RETURN_IF_ERROR(CheckRange("starts.sampling.temperature", params.temperature,
                                      std::isfinite(params.temperature) && params.temperature > 0,
                                      "above 0"));
  PENSTOCK_RETURN_IF_ERROR(CheckRange("starts.sampling.top_p", params.top_p,
                                      Within(params.top_p, 0, 1) && params.top_p > 0,
                                      "above 0 and at most 1"));
  PENSTOCK_RETURN_IF_ERROR(CheckRange("starts.sampling.typical_p", params.typical_p,
                                      Within(params.typical_p, 0, 1) && params.typical_p > 0,
                                      "above 0 and at most 1"));
  PENSTOCK_RETURN_IF_ERROR(CheckRange("starts.sampling.min_p", params.min_p,
                                      Within(params.min_p, 0, 1) && params.min_p < 1,
                                      "from 0 to below 1"));
  PENSTOCK_RETURN_IF_ERROR(CheckRange(
      "starts.sampling.repetition_penalty", params.repetition_penalty,
      std::isfinite(params.repetition_penalty) && params.repetition_penalty > 0, "above 0"));
  PENSTOCK_RETURN_IF_ERROR(CheckRange("starts.sampling.frequency_penalty", params.frequency_penalty,
                                      Within(params.frequency_penalty, -2, 2), "from -2 to 2"));
  PENSTOCK_RETURN_IF_ERROR(CheckRange("starts.sampling.presence_penalty", params.presence_penalty,
                                      Within(params.presence_penalty, -2, 2), "from -2 to 2"));
  PENSTOCK_RETURN_IF_ERROR(CheckRange("starts.sampling.penalty_alpha", params.penalty_alpha,
                                      params.penalty_alpha == 0,
                                      "0: contrastive search is not offered"));
  for (const SamplingParams::LogitBias& bias : params.logit_bias) {
    PENSTOCK_RETURN_IF_ERROR(CheckTokens({bias.token}, vocabulary, "starts.sampling.bias_tokens"));
    PENSTOCK_RETURN_IF_ERROR(CheckRange("starts.sampling.bias_values", bias.bias,
                                        Within(bias.bias, -100, 100), "from -100 to 100"));
  }
  return absl::OkStatus();
}

}  // namespace penstock::shard
