// Jais 2 (Inception, MBZUAI): Llama with LayerNorm and biases in all layers. Its MLP has no gate,
// and its activation is the square of ReLU.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kJais2Sizes{.hidden = 3328,
                               .layers = 32,
                               .heads = 26,
                               .intermediate = 26624,
                               .vocabulary = 150272,
                               .positions = 8192};

void BuildJais2(DecoderBuilder& b) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&b](std::uint32_t) {
    b.LayerNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.LayerNorm("post_attention_layernorm");
    b.Mlp("mlp.up_proj", b.spec().activation, "mlp.down_proj");
    b.AddToResidual();
  });
  b.LayerNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadJais2(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kJais2Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  PENSTOCK_ASSIGN_OR_RETURN(spec.activation,
                            ReadActivation(config, "hidden_act", Activation::kReluSquared));
  spec.build = BuildJais2;
  return absl::OkStatus();
}

}  // namespace penstock::shard
