// The RoPE keys of config.json: `rope_theta` and `rope_scaling` of transformers 4, or
// `rope_parameters` of transformers 5, which holds both.
#pragma once

#include <absl/status/status.h>

#include "shard/model/config_reader.h"
#include "shard/model/model_spec.h"

namespace penstock::shard {

// Sets spec.rope, which rotates whole heads, from spec.head_dim and spec.max_position. Linear and
// yarn scaling extend spec.max_position. An unknown RoPE type is refused by name.
absl::Status ReadRope(const ConfigReader& config, ModelSpec& spec);

}  // namespace penstock::shard
