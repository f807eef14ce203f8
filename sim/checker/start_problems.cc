#include "sim/checker/start_problems.h"

#include <algorithm>

namespace penstock::sim {

std::vector<std::string> StartProblems(const SequenceStart& start, const RequestModel& request) {
  std::vector<std::string> problems;
  const auto expect = [&problems](bool right, const char* what) {
    if (!right) problems.emplace_back(what);
  };
  std::vector<TokenId> prompt = request.arrival.prompt;
  prompt.insert(prompt.end(), request.tokens.begin(), request.tokens.end());
  const std::uint32_t received = request.received();
  const std::uint32_t min_new = request.arrival.min_new_tokens;
  expect(start.prompt == prompt && start.prompt_length == prompt.size(), "prompt");
  expect(start.sample_index_base == received, "sample_index_base");
  expect(start.max_new_tokens == request.arrival.max_new_tokens - received, "max_new_tokens");
  expect(start.min_new_tokens == min_new - std::min(min_new, received), "min_new_tokens");
  expect(start.sampling == request.arrival.sampling, "sampling");
  expect(start.grammar == request.arrival.grammar, "grammar");
  expect(start.stop_token_ids == request.arrival.stop_token_ids, "stop_token_ids");
  LogprobRequest logprobs = request.arrival.logprobs;
  logprobs.prompt_logprobs = logprobs.prompt_logprobs && received == 0;
  expect(start.logprobs == logprobs, "logprobs");
  expect(start.adapter_id == request.arrival.adapter_id, "adapter_id");
  expect(start.trace_id == request.arrival.trace_id, "trace_id");
  expect(start.ignore_eos == request.arrival.ignore_eos, "ignore_eos");
  expect(start.cached_length < prompt.size(), "cached_length");
  return problems;
}

}  // namespace penstock::sim
