// The next token of the simulated model. It depends on the sequence's start and the position alone.
// So a restart continues with the same tokens. Its prompt is the original prompt and the output so
// far, and sample_index_base is the length of that output.
//
// Hash: a regular token by hash of (original prompt, seed, position); the seed is 0 when greedy.
// Echo: the k-th new token is the original prompt's k-th token without specials, then the end
// token. If the end token is masked (min_new_tokens), the echo starts again. Directives of the
// request (EchoScript) may change the tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/ids.h"
#include "common/plan/step_plan.h"
#include "tools/simshard/echo_script.h"
#include "tools/simshard/model_facts.h"

namespace penstock::simshard {

enum class TokenRule : std::uint8_t { kHash, kEcho };

class TokenScript {
 public:
  // `facts` outlives the script.
  TokenScript(const SequenceStart& start, TokenRule rule, const ModelFacts& facts,
              EchoScript echo = {});

  // `index`: position in the request's output, from 0.
  TokenId At(std::uint32_t index, bool end_masked) const;

  const EchoScript& echo() const { return echo_; }

 private:
  const ModelFacts* facts_;
  TokenRule rule_;
  std::uint64_t key_ = 0;        // hash
  std::vector<TokenId> script_;  // echo
  EchoScript echo_;
};

// -(1 + index % 4) / 4 for the index-th generated token, as in TGI's recorded stand-in shard.
float SimulatedLogprob(std::uint32_t index);

std::uint64_t MixHash(std::uint64_t state, std::uint64_t word);

}  // namespace penstock::simshard
