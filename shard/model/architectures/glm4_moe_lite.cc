// GLM-4.7-Flash (Z.ai): the latent attention of DeepSeek V3 with the experts of GLM-4.5. The layers
// after the last one, which predict more tokens, are skipped.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"
#include "shard/model/latent_attention.h"
#include "shard/model/latent_config.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class. `head_dim` has no meaning.
constexpr SizeKeys kGlm4MoeLiteSizes{.hidden = 2048,
                                     .layers = 47,
                                     .heads = 20,
                                     .head_dim = 2,
                                     .intermediate = 10240,
                                     .vocabulary = 154880,
                                     .positions = 202752};
constexpr LatentHeads kGlm4MoeLiteHeads{
    .query_latent = 768, .latent = 512, .nope = 192, .rope = 64, .value = 256};

struct Glm4MoeLite {
  LatentHeads heads;
  std::vector<bool> sparse;             // by layer: experts, not an MLP
  std::uint32_t prediction_layers = 0;  // after the last one
  Routing routing;
};

void BuildGlm4MoeLite(DecoderBuilder& b, const Glm4MoeLite& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.IgnoreLayersAfter("layers", model.prediction_layers);
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    AddLatentAttention(b, "self_attn", model.heads);
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    if (model.sparse[layer]) {
      b.Router("mlp.gate", model.routing.experts);
      AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", model.routing,
                 "mlp.gate.e_score_correction_bias");
      AddSharedExpert(b, "mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj",
                      "mlp.shared_experts.down_proj");
    } else {
      b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

absl::Status ReadGlm4MoeLiteExperts(const ConfigReader& config, ModelSpec& spec,
                                    Glm4MoeLite& model) {
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "sigmoid", {"noaux_tc"}));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadSigmoidRouting(config, 64, 4));
  PENSTOCK_ASSIGN_OR_RETURN(const double scale,
                            config.NumberOr("routed_scaling_factor", 1.8, 1e-6, 1e6));
  model.routing.scale = static_cast<float>(scale);
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 1536, 1, 1u << 20));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t shared,
                            config.IntegerOr("n_shared_experts", 1, 1, 64));
  spec.shared_intermediate = shared * spec.expert_intermediate;
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(model.sparse, ReadMlpLayerTypes(config, spec.layers, 1));
  const auto dense = std::find(model.sparse.begin(), model.sparse.end(), false);
  if (dense == model.sparse.end()) spec.intermediate = 0;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGlm4MoeLite(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGlm4MoeLiteSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  Glm4MoeLite model;
  PENSTOCK_ASSIGN_OR_RETURN(model.heads, ReadLatentHeads(config, kGlm4MoeLiteHeads, spec));
  PENSTOCK_ASSIGN_OR_RETURN(model.heads.interleaved, config.BoolOr("rope_interleave", true));
  PENSTOCK_RETURN_IF_ERROR(ReadGlm4MoeLiteExperts(config, spec, model));
  PENSTOCK_ASSIGN_OR_RETURN(model.prediction_layers, ReadPredictionLayers(config, 1));
  spec.build = [model](DecoderBuilder& b) { BuildGlm4MoeLite(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
