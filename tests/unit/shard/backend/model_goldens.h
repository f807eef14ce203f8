// What HF transformers computed for each model type and variant (tests/data/goldens/models), and
// how far a backend is from it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/shard/backend/model_runner.h"

namespace penstock::shard {

struct ModelGolden {
  // For the last row of the text up to `position`.
  struct Row {
    std::size_t position = 0;
    std::string how;                                // whole or decode
    std::vector<std::pair<TokenId, float>> logits;  // the best, and a sample
    float logsumexp = 0.0f;
  };

  std::string name, type;
  float bound = 0.0f;
  std::size_t prompt = 0;     // tokens of the text that are the prompt
  std::vector<TokenId> text;  // the prompt and the greedy tokens
  std::vector<float> logprobs;
  std::vector<std::size_t> close;  // greedy steps whose best two logits are too near
  std::vector<Row> rows;
  // From the recipe:
  std::string todo, length_rule;
  std::size_t original_length = 0;
  bool world2 = true;

  // The row computed in the way `how`, if transformers gives another result for it.
  const Row& At(std::size_t position, const std::string& how) const;
  std::vector<std::size_t> Positions() const;
  std::vector<TokenId> Begin(std::size_t count) const {
    return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count)};
  }
};

ModelGolden ReadModelGolden(const std::string& name);

// For the checkpoint of the golden, in float32.
RunnerOptions OptionsOf(const ModelGolden& golden);

// Why the shard does not serve it; empty if it does.
std::string WhyNotServed(const ModelGolden& golden);

// The largest difference of the golden rows, computed in pieces of `chunk`.
float PrefillDifference(ModelRunner& runner, const ModelGolden& golden, std::size_t chunk);

// Prefills the prompt and decodes the golden tokens one by one. Checks the greedy ids.
float DecodeDifference(ModelRunner& runner, const ModelGolden& golden);

inline constexpr std::size_t kWholePrompt = 128;
inline constexpr std::size_t kShortChunk = 7;

// NaN counts as the largest difference.
inline float Larger(float a, float b) { return a >= b ? a : b; }

// The differences of the ways whole, chunks, decode and world2, then the bound. Prints one line.
void PrintDifferences(const ModelGolden& golden, const std::string& backend,
                      std::vector<std::optional<float>> differences);

}  // namespace penstock::shard
