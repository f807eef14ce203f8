// Trinity (Arcee AI): norms before and after the branches, a gate for each dimension of attention,
// windows with RoPE and full layers without it, and a mixture of experts that are chosen by
// sigmoids, beside a shared expert.
#include <cmath>
#include <cstdint>
#include <string>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kAfmoeSizes{.hidden = 2048,
                               .layers = 32,
                               .heads = 16,
                               .head_dim = 128,
                               .intermediate = 6144,
                               .vocabulary = 200192,
                               .positions = 16384};

struct Afmoe {
  bool scaled = false;             // the embedding
  std::uint32_t dense_layers = 0;  // the first ones have an MLP
  Routing routing;
};

void BuildAfmoeMlp(DecoderBuilder& b, const Afmoe& model, std::uint32_t layer) {
  b.RmsNorm("pre_mlp_layernorm");
  if (layer < model.dense_layers) {
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  } else {
    b.Router("mlp.router.gate", model.routing.experts);
    AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", model.routing,
               "mlp.expert_bias");
    AddSharedExpert(b, "mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj",
                    "mlp.shared_experts.down_proj");
  }
  b.BranchRmsNorm("post_mlp_layernorm");
  b.AddToResidual();
}

void BuildAfmoe(DecoderBuilder& b, const Afmoe& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight",
              model.scaled ? std::sqrt(static_cast<float>(b.spec().hidden)) : 1.0f);
  b.Layers("layers", [&](std::uint32_t layer) {
    const std::uint32_t window = b.spec().windows[layer];
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.AttentionGateFrom("self_attn.gate_proj");
    b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
    window > 0 ? b.Rope() : b.NoRope();
    b.Attention(window);
    b.AttentionGate();
    b.AttentionOutput("self_attn.o_proj");
    b.BranchRmsNorm("post_attention_layernorm");
    b.AddToResidual();
    BuildAfmoeMlp(b, model, layer);
  });
  b.RmsNorm("norm");
  b.Head();
}

absl::Status ReadAfmoeExperts(const ConfigReader& config, ModelSpec& spec, Afmoe& model) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string scores, config.StringOr("score_func", "sigmoid"));
  if (scores != "sigmoid") return config.Bad("score_func", "sigmoid or absent");
  PENSTOCK_ASSIGN_OR_RETURN(const bool renormalized, config.BoolOr("route_norm", true));
  if (!renormalized) return config.Bad("route_norm", "true or absent");
  for (const char* key : {"n_group", "topk_group", "num_expert_groups", "num_limited_groups"}) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t groups, config.IntegerOr(key, 1, 0, 1u << 16));
    if (groups > 1) return config.Bad(key, "1 or absent");
  }
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 64, 6));
  model.routing.kind = Routing::Kind::kSigmoid;
  model.routing.renormalized = true;
  PENSTOCK_ASSIGN_OR_RETURN(model.routing.scale, ReadMultiplier(config, "route_scale"));
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 1408, 1, 1u << 20));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t shared,
                            config.IntegerOr("num_shared_experts", 2, 1, 64));
  spec.shared_intermediate = shared * spec.expert_intermediate;
  PENSTOCK_ASSIGN_OR_RETURN(model.dense_layers, config.IntegerOr("num_dense_layers", 1, 0, 4096));
  if (model.dense_layers == 0) spec.intermediate = 0;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadAfmoe(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kAfmoeSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t pattern,
                            config.IntegerOr("global_attn_every_n_layers", 4, 1, 4096));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 1024));
  if (config.Has("layer_types")) {
    PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, window, 0, spec));
  } else {
    for (std::uint32_t i = 1; i <= spec.layers; ++i) {
      spec.windows.push_back(i % pattern == 0 ? 0 : window);
    }
  }
  Afmoe model;
  PENSTOCK_ASSIGN_OR_RETURN(model.scaled, config.BoolOr("mup_enabled", false));
  PENSTOCK_RETURN_IF_ERROR(ReadAfmoeExperts(config, spec, model));
  spec.build = [model](DecoderBuilder& b) { BuildAfmoe(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
