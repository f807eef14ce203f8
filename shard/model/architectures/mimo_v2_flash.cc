// MiMo-V2-Flash (Xiaomi): layers with a window have sinks and twice the K/V heads, value heads are
// narrower than key heads, and a mixture of experts is chosen by sigmoids in groups.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kMiMoV2Sizes{.hidden = 4096,
                                .layers = 48,
                                .heads = 64,
                                .kv_heads = 4,
                                .head_dim = 192,
                                .intermediate = 16384,
                                .vocabulary = 152576,
                                .positions = 131072};
constexpr double kMiMoPart = 0.334;  // of a head is rotated
constexpr double kMiMoFullTheta = 5e6;
constexpr double kMiMoWindowTheta = 1e4;

struct MiMoV2 {
  RopeSpec window_rope;
  std::uint32_t value_dim = 0;
  float value_scale = 1.0f;
  std::vector<bool> sparse;  // by layer: experts, not an MLP
  Routing routing;
};

void BuildMiMoV2Attention(DecoderBuilder& b, const MiMoV2& model, std::uint32_t layer) {
  const ModelSpec& spec = b.spec();
  const std::uint32_t window = spec.windows[layer];
  b.SetHeads({spec.heads, window > 0 ? spec.kv_heads : spec.full_kv_heads, spec.head_dim,
              model.value_dim});
  b.RmsNorm("input_layernorm");
  b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  b.Rope(window > 0 ? model.window_rope : spec.rope);
  b.Attention(window);
  if (window > 0) {
    // transformers 5 has another name in its own files.
    const std::string own = "layers." + std::to_string(layer) + ".self_attn.sinks";
    b.Sinks(b.Has(own) ? "self_attn.sinks" : "self_attn.attention_sink_bias");
  }
  b.AttentionOutput("self_attn.o_proj");
  b.AddToResidual();
}

void BuildMiMoV2(DecoderBuilder& b, const MiMoV2& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.IgnorePrefix("model.mtp.");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    BuildMiMoV2Attention(b, model, layer);
    // The branch of attention is linear in the values, so their scale is that of the branch.
    b.SetResidualScale(model.value_scale);
    b.RmsNorm("post_attention_layernorm");
    b.SetResidualScale(1.0f);
    if (model.sparse[layer]) {
      b.Router("mlp.gate", model.routing.experts);
      AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", model.routing,
                 "mlp.gate.e_score_correction_bias");
    } else {
      b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// `layer_types`, or `hybrid_layer_pattern` of the published files, which has 1 for a window. The
// window is `sliding_window`; `sliding_window_size` does not count the token itself.
absl::Status ReadMiMoV2Windows(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(std::uint32_t window,
                            config.IntegerOr("sliding_window", 129, 1, 2147483647u));
  if (config.Has("sliding_window_size")) {
    PENSTOCK_ASSIGN_OR_RETURN(window, config.Integer("sliding_window_size", 1, 2147483646u));
    ++window;
  }
  if (config.Has("layer_types")) return ReadWindows(config, window, 0, spec);
  constexpr char kPattern[] = "hybrid_layer_pattern";
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<bool> pattern, config.FlagsOr(kPattern));
  if (pattern.empty()) {
    for (std::uint32_t i = 0; i < spec.layers; ++i) pattern.push_back(i > 0 && (i + 1) % 6 != 0);
  }
  if (pattern.size() != spec.layers) {
    return config.Bad(kPattern, "a list of " + std::to_string(spec.layers) + " numbers");
  }
  for (const bool windowed : pattern) spec.windows.push_back(windowed ? window : 0);
  return absl::OkStatus();
}

// Which layers have experts: `moe_layer_freq` of the published files has 1 for those.
absl::Status ReadMiMoV2Sparse(const ConfigReader& config, const ModelSpec& spec, MiMoV2& model) {
  constexpr char kKey[] = "moe_layer_freq";
  PENSTOCK_ASSIGN_OR_RETURN(model.sparse, config.FlagsOr(kKey));
  if (model.sparse.empty() || config.Has("mlp_layer_types")) {
    PENSTOCK_ASSIGN_OR_RETURN(model.sparse, ReadMlpLayerTypes(config, spec.layers, 1));
  }
  if (model.sparse.size() == spec.layers) return absl::OkStatus();
  return config.Bad(kKey, "a list of " + std::to_string(spec.layers) + " numbers");
}

absl::Status ReadMiMoV2Heads(const ConfigReader& config, ModelSpec& spec, MiMoV2& model) {
  const std::uint32_t positions = spec.max_position;
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config,
                                    {.theta = "swa_rope_theta",
                                     .part = "partial_rotary_factor",
                                     .default_part = kMiMoPart,
                                     .default_theta = kMiMoWindowTheta,
                                     .layer_type = "sliding_attention",
                                     .scaling = false},
                                    spec));
  model.window_rope = std::exchange(spec.rope, {});
  spec.max_position = positions;
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config,
                                    {.part = "partial_rotary_factor",
                                     .default_part = kMiMoPart,
                                     .default_theta = kMiMoFullTheta,
                                     .layer_type = "full_attention"},
                                    spec));
  spec.full_kv_heads = spec.kv_heads;
  PENSTOCK_ASSIGN_OR_RETURN(spec.kv_heads, config.IntegerOr("swa_num_key_value_heads",
                                                            2 * spec.full_kv_heads, 1, spec.heads));
  if (spec.kv_heads > spec.heads || spec.heads % spec.kv_heads != 0) {
    return config.Bad("num_key_value_heads", "such that twice as many divide the " +
                                                 std::to_string(spec.heads) + " heads");
  }
  PENSTOCK_ASSIGN_OR_RETURN(model.value_dim, config.IntegerOr("v_head_dim", 128, 2, spec.head_dim));
  if (model.value_dim > spec.head_dim) {
    return config.Bad("v_head_dim", "at most `head_dim` " + std::to_string(spec.head_dim));
  }
  if (config.IsNull("attention_value_scale")) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const double scale,
                            config.NumberOr("attention_value_scale", 0.707, 1e-6, 1e6));
  model.value_scale = static_cast<float>(scale);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadMiMoV2Flash(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kMiMoV2Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(
      config, config.Has("layernorm_epsilon") ? "layernorm_epsilon" : "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadMiMoV2Windows(config, spec));
  MiMoV2 model;
  PENSTOCK_RETURN_IF_ERROR(ReadMiMoV2Heads(config, spec, model));
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "sigmoid", {"noaux_tc"}));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadSigmoidRouting(config, 256, 8));
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 2048, 1, 1u << 20));
  PENSTOCK_RETURN_IF_ERROR(ReadMiMoV2Sparse(config, spec, model));
  const auto dense = std::find(model.sparse.begin(), model.sparse.end(), false);
  if (dense == model.sparse.end()) spec.intermediate = 0;
  spec.build = [model](DecoderBuilder& b) { BuildMiMoV2(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
