// GLM-4.5 and 4.6 (arXiv:2508.06471): heads rotated in part, a mixture of experts chosen by
// sigmoids in groups, and a shared expert. The layers after the last one predict more tokens and
// are skipped.

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGlm4MoeSizes{.hidden = 4096,
                                 .layers = 46,
                                 .heads = 96,
                                 .kv_heads = 8,
                                 .intermediate = 10944,
                                 .vocabulary = 151552,
                                 .positions = 131072};

struct Glm4Moe {
  bool head_norms = false;
  std::uint32_t dense_layers = 0;       // the first ones have an MLP
  std::uint32_t prediction_layers = 0;  // after the last one
  Routing routing;
};

void BuildGlm4Moe(DecoderBuilder& b, const Glm4Moe& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.IgnoreLayersAfter("layers", model.prediction_layers);
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    if (model.head_norms) b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    if (layer < model.dense_layers) {
      b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    } else {
      b.Router("mlp.gate", model.routing.experts);
      AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", model.routing,
                 "mlp.gate.e_score_correction_bias");
      AddSharedExpert(b, "mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj",
                      "mlp.shared_experts.down_proj");
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadGlm4Moe(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGlm4MoeSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.part = "partial_rotary_factor", .default_part = 0.5}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  Glm4Moe model;
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "sigmoid", {"noaux_tc"}));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadSigmoidRouting(config, 128, 8));
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 1408, 1, 1u << 20));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t shared,
                            config.IntegerOr("n_shared_experts", 1, 1, 64));
  spec.shared_intermediate = shared * spec.expert_intermediate;
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(model.dense_layers,
                            config.IntegerOr("first_k_dense_replace", 1, 0, 4096));
  if (model.dense_layers == 0) spec.intermediate = 0;
  PENSTOCK_ASSIGN_OR_RETURN(model.prediction_layers, ReadPredictionLayers(config, 1));
  PENSTOCK_ASSIGN_OR_RETURN(model.head_norms, config.BoolOr("use_qk_norm", false));
  spec.build = [model](DecoderBuilder& b) { BuildGlm4Moe(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
