// What a request may cost, estimated before anything of it is computed. A request may be small in
// bytes and yet ask for much: alternatives of each token times candidates, long lists of stop
// strings, a schema of megabytes. One unit is about the work of one generated token.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "router/api/errors.h"
#include "router/engine.h"

namespace penstock::router {

struct RequestCost {
  std::uint64_t tokens = 0;        // the longest outputs of all candidates
  std::uint64_t alternatives = 0;  // of these and of the prompts' tokens
  std::uint64_t strings = 0;       // stop strings, bad words and biases, looked at for each token
  std::uint64_t grammar = 0;       // bytes of schemas and other grammars

  std::uint64_t total() const { return tokens + alternatives + strings + grammar; }
};

RequestCost CostOf(const std::vector<GenerationRequest>& candidates, const ModelFacts& facts);

// Why the request costs too much; `most` 0: nothing does.
std::optional<ApiError> CheckCost(const std::vector<GenerationRequest>& candidates,
                                  const ModelFacts& facts, std::uint64_t most);

}  // namespace penstock::router
