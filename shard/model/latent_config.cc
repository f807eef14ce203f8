#include "shard/model/latent_config.h"

#include <cmath>

#include "common/status.h"
#include "shard/model/config_keys.h"

namespace penstock::shard {
namespace {

constexpr std::uint32_t kMaxLatentHeadDim = 4096;

absl::Status ReadLatentSizes(const ConfigReader& config, LatentHeads& heads) {
  if (config.IsNull("q_lora_rank")) {
    heads.query_latent = 0;
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(
        heads.query_latent,
        config.IntegerOr("q_lora_rank", heads.query_latent, 1, kMaxLatentWidth));
  }
  PENSTOCK_ASSIGN_OR_RETURN(heads.latent,
                            config.IntegerOr("kv_lora_rank", heads.latent, 1, kMaxLatentWidth));
  PENSTOCK_ASSIGN_OR_RETURN(heads.nope,
                            config.IntegerOr("qk_nope_head_dim", heads.nope, 1, kMaxLatentHeadDim));
  PENSTOCK_ASSIGN_OR_RETURN(heads.rope,
                            config.IntegerOr("qk_rope_head_dim", heads.rope, 2, kMaxLatentHeadDim));
  if (heads.rope % 2 != 0) return config.Bad("qk_rope_head_dim", "even");
  PENSTOCK_ASSIGN_OR_RETURN(heads.value,
                            config.IntegerOr("v_head_dim", heads.value, 1, kMaxLatentHeadDim));
  return absl::OkStatus();
}

// yarn also scales the products of queries and keys: cos and sin rotate only a part of each head.
absl::StatusOr<double> ReadScale(const ConfigReader& config, const RopeSpec& rope,
                                 const LatentHeads& heads) {
  double scale = 1.0 / std::sqrt(static_cast<double>(heads.nope + heads.rope));
  if (rope.type == RopeType::kDefault) return scale;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto scaling, config.Object(key));
    if (!scaling.has_value()) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const double all, scaling->NumberOr("mscale_all_dim", 0.0, 0.0, 1e3));
    PENSTOCK_ASSIGN_OR_RETURN(const double factor,
                              scaling->NumberOr("factor", rope.factor, 1e-3, 1e6));
    if (all == 0.0 || factor <= 1.0) continue;
    const double once = 0.1 * all * std::log(factor) + 1.0;
    scale *= once * once;
  }
  return scale;
}

}  // namespace

// Heads of queries and keys have `nope` and `rope` dimensions; `head_dim` and
// `num_key_value_heads` mean nothing.
absl::StatusOr<LatentHeads> ReadLatentHeads(const ConfigReader& config, const LatentHeads& absent,
                                            ModelSpec& spec) {
  LatentHeads heads = absent;
  PENSTOCK_RETURN_IF_ERROR(ReadLatentSizes(config, heads));
  spec.kv_heads = 1;
  spec.head_dim = heads.rope;  // of which ReadRope takes RoPE
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  spec.head_dim = heads.latent + heads.rope;
  PENSTOCK_ASSIGN_OR_RETURN(const double scale, ReadScale(config, spec.rope, heads));
  heads.scale = static_cast<float>(scale);
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  return heads;
}

}  // namespace penstock::shard
