// Hunyuan 3 (Tencent): Llama with norms of heads, a mixture of experts that are chosen by sigmoids,
// and a shared expert. The layers after the last one, which predict more tokens, are skipped.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kHyV3Sizes{.hidden = 4096,
                              .layers = 80,
                              .heads = 64,
                              .kv_heads = 8,
                              .head_dim = 128,
                              .intermediate = 13312,
                              .vocabulary = 120832,
                              .positions = 131072};

struct HyV3 {
  std::vector<bool> sparse;             // by layer: experts, not an MLP
  std::uint32_t prediction_layers = 0;  // after the last one
  Routing routing;
};

void BuildHyV3Experts(DecoderBuilder& b, const Routing& routing, std::uint32_t layer) {
  // transformers 5 has other names in its own files.
  const std::string own = "layers." + std::to_string(layer) + ".mlp.";
  const bool published = b.Has(own + "expert_bias");
  const std::string shared = published ? "mlp.shared_mlp." : "mlp.shared_experts.";
  b.Router(published ? "mlp.router.gate" : "mlp.gate", routing.experts);
  AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", routing,
             published ? "mlp.expert_bias" : "mlp.e_score_correction_bias");
  AddSharedExpert(b, shared + "gate_proj", shared + "up_proj", shared + "down_proj");
}

void BuildHyV3(DecoderBuilder& b, const HyV3& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.IgnoreLayersAfter("layers", model.prediction_layers);
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    if (model.sparse[layer]) {
      BuildHyV3Experts(b, model.routing, layer);
    } else {
      b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadHyV3(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kHyV3Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.default_theta = 11158840.0}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  HyV3 model;
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 192, 8));
  model.routing.kind = Routing::Kind::kSigmoid;
  model.routing.renormalized = true;
  PENSTOCK_ASSIGN_OR_RETURN(const double scale,
                            config.NumberOr("router_scaling_factor", 2.826, 1e-6, 1e6));
  model.routing.scale = static_cast<float>(scale);
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 1536, 1, 1u << 20));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t shared,
                            config.IntegerOr("num_shared_experts", 1, 1, 64));
  spec.shared_intermediate = shared * spec.expert_intermediate;
  PENSTOCK_ASSIGN_OR_RETURN(model.sparse, ReadMlpLayerTypes(config, spec.layers, 1));
  const auto dense = std::find(model.sparse.begin(), model.sparse.end(), false);
  if (dense == model.sparse.end()) spec.intermediate = 0;
  PENSTOCK_ASSIGN_OR_RETURN(model.prediction_layers, ReadPredictionLayers(config, 1));
  spec.build = [model](DecoderBuilder& b) { BuildHyV3(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
