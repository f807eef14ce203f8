#include "router/api/request_cost.h"

#include <algorithm>
#include <string>

namespace penstock::router {
namespace {

constexpr std::uint64_t kAlternativesOfUnit = 4;   // each is decoded and written
constexpr std::uint64_t kBytesOfUnit = 64;         // compared with each token
constexpr std::uint64_t kUnitsOfGrammarByte = 16;  // parsed, compiled, and walked for masks

std::uint64_t BytesOf(const std::vector<std::string>& texts) {
  std::uint64_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  return bytes;
}

void Add(const GenerationRequest& request, const ModelFacts& facts, RequestCost& cost) {
  const std::uint64_t longest =
      std::min<std::uint64_t>(request.max_new_tokens.value_or(facts.max_total_tokens),
                              std::max(1u, facts.max_total_tokens));
  const std::uint64_t width = request.beams ? request.beams->width : 1;
  const std::uint64_t tokens = longest * width;
  cost.tokens += tokens;
  const LogprobRequest& logprobs = request.logprobs;
  const std::uint64_t of_prompt =
      std::uint64_t{facts.max_input_tokens} * logprobs.prompt_top_n.value_or(0);
  cost.alternatives += (tokens * logprobs.top_n + of_prompt) / kAlternativesOfUnit;
  const std::uint64_t looked_at =
      BytesOf(request.stop) + BytesOf(request.bad_words) + request.sampling.logit_bias.size();
  cost.strings += tokens * looked_at / kBytesOfUnit;
  std::uint64_t grammar = request.grammar.source.size();
  for (const Grammar::Part& part : request.grammar.parts) grammar += part.spec.source.size();
  cost.grammar += grammar * kUnitsOfGrammarByte;
}

}  // namespace

// A beam search has an entry for each of its results, and runs once.
RequestCost CostOf(const std::vector<GenerationRequest>& candidates, const ModelFacts& facts) {
  RequestCost cost;
  for (std::size_t i = 0; i < candidates.size();) {
    Add(candidates[i], facts, cost);
    i += candidates[i].beams ? std::max(1u, candidates[i].beams->results) : 1;
  }
  return cost;
}

std::optional<ApiError> CheckCost(const std::vector<GenerationRequest>& candidates,
                                  const ModelFacts& facts, std::uint64_t most) {
  if (most == 0) return std::nullopt;
  const RequestCost cost = CostOf(candidates, facts);
  if (cost.total() <= most) return std::nullopt;
  return ApiError{ApiErrorKind::kValidation,
                  "the request may cost at most " + std::to_string(most) +
                      " (--max-request-cost). Given: " + std::to_string(cost.total()) + ", " +
                      std::to_string(cost.tokens) + " for the tokens of all answers, " +
                      std::to_string(cost.alternatives) + " for alternatives of tokens, " +
                      std::to_string(cost.strings) + " for stop strings, bad words and biases, " +
                      std::to_string(cost.grammar) + " for grammars",
                  ""};
}

}  // namespace penstock::router
