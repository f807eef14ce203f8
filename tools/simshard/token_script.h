// Which token the simulated model says next. A function of the sequence's start and the position
// alone, so a restart (prompt = original prompt + what was generated, sample_index_base = how much)
// goes on as if nothing had happened.
//
// Hash: a regular token by hash of (original prompt, seed, position); the seed is 0 when greedy.
// Echo: the k-th new token is the original prompt's k-th token without specials, then the end
// token. Where the end token is masked (min_new_tokens), the echo starts again. A request that the
// router shows (EchoScript) may say other tokens, for ever or not.
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

// -(1 + index % 4) / 4 for the index-th generated token, as TGI's recorded stand-in shard says.
float SimulatedLogprob(std::uint32_t index);

std::uint64_t MixHash(std::uint64_t state, std::uint64_t word);

}  // namespace penstock::simshard
