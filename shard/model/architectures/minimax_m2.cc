// MiniMax-M2 (MiniMax): Llama with norms over all query and all key heads, heads that are rotated
// in part, and a mixture of experts in each layer, chosen by sigmoids.
#include <cstdint>
#include <string>
#include <utility>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"
#include "shard/model/head_norms.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kMinimaxM2Sizes{.hidden = 3072,
                                   .layers = 62,
                                   .heads = 48,
                                   .kv_heads = 8,
                                   .head_dim = 128,
                                   .intermediate = 1536,
                                   .vocabulary = 200064,
                                   .positions = 196608};

void BuildMiniMaxM2(DecoderBuilder& b, const Routing& routing) {
  b.Prefix({"model.", ""}, "norm.weight");
  // transformers 5 has another name.
  const std::string block = b.Has("layers.0.mlp.gate.weight") ? "mlp." : "block_sparse_moe.";
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    AddWidthNorm(b, "self_attn.q_norm", "self_attn.k_norm");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.Router(block + "gate", routing.experts);
    AddExperts(b, block + "experts", "w1", "w3", "w2", routing, block + "e_score_correction_bias");
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// The published files say `rotary_dim`, not a share.
absl::Status ReadMiniMaxRope(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t dim,
                            config.IntegerOr("rotary_dim", spec.head_dim, 2, spec.head_dim));
  return ReadRope(config,
                  {.part = "partial_rotary_factor",
                   .default_part = static_cast<double>(dim) / spec.head_dim,
                   .default_theta = 5e6},
                  spec);
}

}  // namespace

absl::Status ReadMiniMaxM2(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kMinimaxM2Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadMiniMaxRope(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  spec.expert_intermediate = std::exchange(spec.intermediate, 0);
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "sigmoid", {"noaux_tc"}));
  PENSTOCK_ASSIGN_OR_RETURN(Routing routing, ReadRouting(config, 256, 8));
  routing.kind = Routing::Kind::kSigmoid;
  routing.renormalized = true;
  spec.experts = routing.experts;
  spec.build = [routing](DecoderBuilder& b) { BuildMiniMaxM2(b, routing); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
