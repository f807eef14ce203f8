// Solar Open (Upstage): Llama with a mixture of experts in each layer, chosen by sigmoids in
// groups, and a shared expert.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class. No layer has an MLP.
constexpr SizeKeys kSolarOpenSizes{.hidden = 4096,
                                   .layers = 48,
                                   .heads = 64,
                                   .kv_heads = 8,
                                   .head_dim = 128,
                                   .intermediate = 1,
                                   .vocabulary = 196608,
                                   .positions = 131072};

void BuildSolarOpen(DecoderBuilder& b, const Routing& routing) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.Router("mlp.gate", routing.experts);
    AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", routing,
               "mlp.gate.e_score_correction_bias");
    AddSharedExpert(b, "mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj",
                    "mlp.shared_experts.down_proj");
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadSolarOpen(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kSolarOpenSizes, spec));
  spec.intermediate = 0;
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.part = "partial_rotary_factor", .default_theta = 1e6}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "sigmoid", {"noaux_tc"}));
  PENSTOCK_ASSIGN_OR_RETURN(const Routing routing, ReadSigmoidRouting(config, 128, 8));
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 1280, 1, 1u << 20));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t shared,
                            config.IntegerOr("n_shared_experts", 1, 1, 64));
  spec.shared_intermediate = shared * spec.expert_intermediate;
  spec.experts = routing.experts;
  spec.build = [routing](DecoderBuilder& b) { BuildSolarOpen(b, routing); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
