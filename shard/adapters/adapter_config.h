// adapter_config.json of a PEFT folder (https://github.com/huggingface/peft). Keys
// that change answers and that are not understood are refused by name.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shard/adapters/module_pattern.h"

namespace penstock::shard {

// Largest rank of a module.
inline constexpr std::uint32_t kMostLoraRank = 512;

struct AdapterConfig {
  std::uint32_t rank = 8;        // `r`
  double alpha = 8;              // `lora_alpha`
  bool rank_stabilized = false;  // `use_rslora`
  ModulePattern targets;         // `target_modules`
  // The first pattern that matches a module gives its rank, or alpha.
  std::vector<std::pair<ModulePattern, std::uint32_t>> ranks;
  std::vector<std::pair<ModulePattern, double>> alphas;

  std::uint32_t RankOf(const std::string& module) const;
  // What multiplies the product of the two matrices: alpha / rank, or alpha / sqrt(rank).
  float ScaleOf(const std::string& module) const;
};

// `text` is that of the file. Errors are one line: file, key, value, limit.
absl::StatusOr<AdapterConfig> ParseAdapterConfig(const std::string& text);

}  // namespace penstock::shard
