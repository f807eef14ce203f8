// Granite 3 MoE (IBM): Granite with a mixture of experts in each layer, in stacks of their own
// names, and a shared expert in some models (`granitemoeshared`).
#include <cstdint>
#include <utility>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGranitemoeSizes{.hidden = 4096,
                                    .layers = 32,
                                    .heads = 32,
                                    .intermediate = 11008,
                                    .vocabulary = 32000,
                                    .positions = 2048};

struct GraniteMoe {
  float embedding = 1.0f;
  float residual = 1.0f;
  float attention = 1.0f;
  float logits = 1.0f;
  Routing routing;
};

void BuildGraniteMoe(DecoderBuilder& b, const GraniteMoe& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight", model.embedding);
  b.SetResidualScale(model.residual);
  b.Layers("layers", [&](std::uint32_t) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(0, model.attention);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.Router("block_sparse_moe.router.layer", model.routing.experts);
    AddStackedExperts(
        b, {"block_sparse_moe.input_linear.weight", "block_sparse_moe.output_linear.weight"},
        model.routing, false, b.spec().activation);
    if (b.spec().shared_intermediate > 0) {
      AddFusedSharedExpert(b, "shared_mlp.input_linear", "shared_mlp.output_linear");
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head(model.logits);
}

absl::Status ReadGranitemoeShared(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGranitemoeSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  spec.expert_intermediate = std::exchange(spec.intermediate, 0);
  GraniteMoe model;
  PENSTOCK_ASSIGN_OR_RETURN(model.embedding, ReadMultiplier(config, "embedding_multiplier"));
  PENSTOCK_ASSIGN_OR_RETURN(model.residual, ReadMultiplier(config, "residual_multiplier"));
  PENSTOCK_ASSIGN_OR_RETURN(model.attention, ReadMultiplier(config, "attention_multiplier"));
  PENSTOCK_ASSIGN_OR_RETURN(const float divisor, ReadMultiplier(config, "logits_scaling"));
  model.logits = 1.0f / divisor;
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 8, 2));
  model.routing.renormalized = true;
  spec.experts = model.routing.experts;
  spec.build = [model](DecoderBuilder& b) { BuildGraniteMoe(b, model); };
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGraniteMoe(const ConfigReader& config, ModelSpec& spec) {
  return ReadGranitemoeShared(config, spec);
}

absl::Status ReadGraniteMoeShared(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_ASSIGN_OR_RETURN(spec.shared_intermediate,
                            config.IntegerOr("shared_intermediate_size", 0, 0, 1u << 24));
  return ReadGranitemoeShared(config, spec);
}

}  // namespace penstock::shard
