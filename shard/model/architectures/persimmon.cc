// Persimmon (Adept): LayerNorm and biases everywhere, norms of heads, heads that are rotated in
// part, and an MLP without a gate that squares what it keeps.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/head_norms.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kPersimmonSizes{.hidden = 4096,
                                   .layers = 36,
                                   .heads = 64,
                                   .intermediate = 16384,
                                   .vocabulary = 262144,
                                   .positions = 16384};

void BuildPersimmon(DecoderBuilder& b, bool head_norms) {
  b.Prefix({"model.", ""}, "final_layernorm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.LayerNorm("input_layernorm");
    b.QkvByHead("self_attn.query_key_value");
    if (head_norms) {
      AddHeadLayerNorm(b, "self_attn.q_layernorm", "self_attn.k_layernorm", HeadWeights::kShared);
    }
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.dense");
    b.AddToResidual();
    b.LayerNorm("post_attention_layernorm");
    b.Mlp("mlp.dense_h_to_4h", b.spec().activation, "mlp.dense_4h_to_h");
    b.AddToResidual();
  });
  b.LayerNorm("final_layernorm");
  b.Head();
}

}  // namespace

absl::Status ReadPersimmon(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kPersimmonSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.part = "partial_rotary_factor", .default_part = 0.5}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  PENSTOCK_ASSIGN_OR_RETURN(spec.activation,
                            ReadActivation(config, "hidden_act", Activation::kReluSquared));
  PENSTOCK_ASSIGN_OR_RETURN(const bool head_norms, config.BoolOr("qk_layernorm", true));
  spec.build = [head_norms](DecoderBuilder& b) { BuildPersimmon(b, head_norms); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
