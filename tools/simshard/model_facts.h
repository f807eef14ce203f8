// Facts that the simulated shard reads from a model folder: vocabulary, end tokens, special ids.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/ids.h"

namespace penstock::simshard {

struct ModelFacts {
  std::string model_id = "simulated";
  std::string model_type = "simulated";
  std::uint32_t vocabulary = 0;
  std::uint32_t max_position = 0;      // 0 = the model does not say
  std::vector<TokenId> eos_token_ids;  // not empty; the first one ends an echo
  std::vector<bool> special;           // [vocabulary], end tokens included
  std::vector<TokenId> regular;        // what hash mode draws from: ids that the tokenizer knows
};

// A vocabulary without a tokenizer. Ids 0, 1 and 2 are special, and 2 is the end token.
ModelFacts PlainFacts(std::uint32_t vocabulary);

// Reads tokenizer.json, and config.json, generation_config.json and tokenizer_config.json if they
// exist. Special ids are the added tokens of tokenizer.json with special = true. The error names
// the file.
absl::StatusOr<ModelFacts> ReadModelFacts(const std::string& folder);

}  // namespace penstock::simshard
