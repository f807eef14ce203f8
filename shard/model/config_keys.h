// Keys of config.json that several families have, for the files of shard/model/architectures.
// Errors are InvalidArgument and name file, key, value and limit.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>

#include "shard/model/config_reader.h"
#include "shard/model/model_spec.h"
#include "shard/model/program.h"
#include "shard/model/rope_config.h"

namespace penstock::shard {

// The defaults of the transformers class, used if config.json has no such key.
struct SizeDefaults {
  std::uint32_t kv_heads = 0;  // 0 = as many as heads
  std::uint32_t head_dim = 0;  // 0 = hidden / heads
};

// `hidden_size`, `num_hidden_layers`, `num_attention_heads`, `num_key_value_heads`, `head_dim`,
// `intermediate_size` and `vocab_size`.
absl::Status ReadSizes(const ConfigReader& config, const SizeDefaults& defaults, ModelSpec& spec);

// Reads the epsilon of the norms; `absent` if there is no such key.
absl::Status ReadNormEps(const ConfigReader& config, std::string_view key, double absent,
                         ModelSpec& spec);

// Reads `max_position_embeddings` and the RoPE keys. Call after ReadSizes.
absl::Status ReadPositions(const ConfigReader& config, const RopeKeys& keys, ModelSpec& spec);

// `hidden_act` must be SiLU.
absl::Status RequireSilu(const ConfigReader& config);

// The form of GELU that `key` names, by default the exact one.
absl::StatusOr<Activation> ReadGelu(const ConfigReader& config, std::string_view key);

// Windows of all layers from `layer_types` or, without it, of the layers from `first_layer` on.
absl::Status ReadWindows(const ConfigReader& config, std::uint32_t window,
                         std::uint32_t first_layer, ModelSpec& spec);

// `sliding_window`: null means no window, which is 0; `absent` if there is no such key.
absl::StatusOr<std::uint32_t> ReadSlidingWindow(const ConfigReader& config, std::uint32_t absent);

}  // namespace penstock::shard
