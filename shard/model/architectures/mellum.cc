// Mellum 2 (JetBrains): Qwen3-MoE with windows in some layers, which have RoPE parameters of their
// own.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kMellumSizes{.hidden = 2304,
                                .layers = 28,
                                .heads = 32,
                                .kv_heads = 4,
                                .head_dim = 128,
                                .intermediate = 7168,
                                .vocabulary = 98304,
                                .positions = 131072};

struct Mellum {
  RopeSpec window_rope;      // of layers with a window
  std::vector<bool> sparse;  // by layer: experts, not an MLP
  Routing routing;
};

void BuildMellum(DecoderBuilder& b, const Mellum& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.IgnorePrefix("mtp.");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    const std::uint32_t window = b.spec().windows[layer];
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
    b.Rope(window > 0 ? model.window_rope : b.spec().rope);
    b.Attention(window);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    if (model.sparse[layer]) {
      b.Router("mlp.gate", model.routing.experts);
      AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", model.routing);
    } else {
      b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadMellum(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kMellumSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  Mellum model;
  const std::uint32_t positions = spec.max_position;
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.layer_type = "sliding_attention"}, spec));
  model.window_rope = std::exchange(spec.rope, {});
  spec.max_position = positions;  // those of the layers without a window count
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.default_theta = 500000.0, .layer_type = "full_attention"}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 1024));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, config.Has("layer_types") ? window : 0, 0, spec));
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "softmax", {"greedy"}));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 64, 8));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing.renormalized, config.BoolOr("norm_topk_prob", true));
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 896, 1, 1u << 24));
  PENSTOCK_ASSIGN_OR_RETURN(model.sparse, ReadMlpLayerTypes(config, spec.layers, 0));
  const auto dense = std::find(model.sparse.begin(), model.sparse.end(), false);
  if (dense == model.sparse.end()) spec.intermediate = 0;
  spec.build = [model](DecoderBuilder& b) { BuildMellum(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
