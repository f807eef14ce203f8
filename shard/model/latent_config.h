// The keys of config.json about multi-head latent attention, for the files of
// shard/model/architectures.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "shard/model/latent_attention.h"
#include "shard/model/model_spec.h"
#include "shard/weights/config_reader.h"

namespace penstock::shard {

inline constexpr std::uint32_t kMaxLatentWidth = 1u << 20;

// Reads `q_lora_rank`, `kv_lora_rank`, `qk_nope_head_dim`, `qk_rope_head_dim` and `v_head_dim`,
// whose defaults are those of `absent`, the RoPE of the heads, and the windows, of which there are
// none. Sets the sizes of heads in `spec`, which ReadSizes has read.
absl::StatusOr<LatentHeads> ReadLatentHeads(const ConfigReader& config, const LatentHeads& absent,
                                            ModelSpec& spec);

}  // namespace penstock::shard
