// The RoPE part of config.json: `rope_theta` and `rope_scaling` of transformers 4, or
// `rope_parameters` of transformers 5, which holds both.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "shard/model/config_reader.h"
#include "shard/model/model_spec.h"

namespace penstock::shard {

struct RopeConfig {
  RopeSpec rope;
  std::uint32_t max_position = 0;  // `max_position_embeddings`, extended by linear and yarn scaling
};

// An unknown rope type is refused by name.
absl::StatusOr<RopeConfig> ReadRopeConfig(const ConfigReader& config, std::uint32_t max_position);

}  // namespace penstock::shard
