// What HF transformers computed for a model of the checkout (tests/data/goldens), and whether a
// backend computes the same.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/unit/shard/backend/model_runner.h"

namespace penstock::shard {

struct HfGoldens {
  struct Case {
    std::string name;
    std::vector<TokenId> prompt;
    std::vector<TokenId> greedy;
    std::vector<std::pair<std::size_t, std::vector<float>>> logits;  // position, row
  };
  std::string folder;  // of the model
  std::vector<Case> cases;
};

// `name`: demo, or a family with a tiny model.
HfGoldens ReadHfGoldens(const std::string& name);

// Logits after each golden position differ by at most 1e-4, in pieces of `chunk`.
void ExpectGoldenLogits(ModelRunner& runner, const HfGoldens& goldens, std::size_t chunk);

void ExpectGoldenIds(ModelRunner& runner, const HfGoldens& goldens);

}  // namespace penstock::shard
