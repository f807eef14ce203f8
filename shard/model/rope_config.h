// The RoPE keys of config.json: `rope_theta` and `rope_scaling` of transformers 4, or
// `rope_parameters` of transformers 5, which holds both.
#pragma once

#include <absl/status/status.h>

#include "shard/model/model_spec.h"
#include "shard/weights/config_reader.h"

namespace penstock::shard {

// Names that a family has for keys of transformers 4.
struct RopeKeys {
  const char* theta = "rope_theta";
  // The share of each head that is rotated. If null, heads are rotated whole.
  const char* part = nullptr;
  double default_part = 1.0;
  double default_theta = 10000.0;  // of the transformers class
  // The layers whose parameters are read where transformers 5 has them by layer type; null: a file
  // with parameters by layer type is refused.
  const char* layer_type = nullptr;
  bool scaling = true;  // `rope_scaling` of transformers 4 is about these layers
};

// Sets spec.rope from spec.head_dim and spec.max_position. Linear, dynamic and yarn scaling extend
// spec.max_position. An unknown RoPE type is refused by name.
absl::Status ReadRope(const ConfigReader& config, const RopeKeys& keys, ModelSpec& spec);

// Makes `rope`, which has a factor, the yarn that config.json would give without other keys.
RopeSpec DefaultYarn(RopeSpec rope);

}  // namespace penstock::shard
