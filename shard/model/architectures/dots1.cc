// dots.llm1 (arXiv:2506.05767): Qwen3 with a mixture of experts chosen by sigmoids in groups, and a
// shared expert.
#include <cstdint>
#include <string>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kDots1Sizes{.hidden = 4608,
                               .layers = 62,
                               .heads = 32,
                               .kv_heads = 32,
                               .intermediate = 10944,
                               .vocabulary = 152064,
                               .positions = 2048};

struct Dots1 {
  std::uint32_t dense_layers = 0;  // the first ones have an MLP
  Routing routing;
};

void BuildDots1(DecoderBuilder& b, const Dots1& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
    b.Rope();
    b.Attention(b.spec().windows[layer]);
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

// The transformers class has no defaults for the numbers of experts.
absl::Status ReadDots1Experts(const ConfigReader& config, ModelSpec& spec, Dots1& model) {
  for (const char* key : {"n_routed_experts", "num_experts_per_tok"}) {
    PENSTOCK_RETURN_IF_ERROR(config.Integer(key, 1, 1u << 16).status());
  }
  // Files of the hub name the method in the place of the function.
  PENSTOCK_ASSIGN_OR_RETURN(const std::string scores, config.StringOr("scoring_func", "sigmoid"));
  PENSTOCK_RETURN_IF_ERROR(
      RequireRouter(config, scores == "noaux_tc" ? scores : "sigmoid", {"noaux_tc"}));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadSigmoidRouting(config, 0, 0));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing.renormalized, config.BoolOr("norm_topk_prob", false));
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 1408, 1, 1u << 20));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t shared, config.Integer("n_shared_experts", 1, 64));
  spec.shared_intermediate = shared * spec.expert_intermediate;
  PENSTOCK_ASSIGN_OR_RETURN(model.dense_layers,
                            config.IntegerOr("first_k_dense_replace", 0, 0, 4096));
  if (model.dense_layers == 0) spec.intermediate = 0;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadDots1(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kDots1Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 4096));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t first_layer,
                            config.IntegerOr("max_window_layers", 62, 0, 4096));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, window, first_layer, spec));
  Dots1 model;
  PENSTOCK_RETURN_IF_ERROR(ReadDots1Experts(config, spec, model));
  spec.build = [model](DecoderBuilder& b) { BuildDots1(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
