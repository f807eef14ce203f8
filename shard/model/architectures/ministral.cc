// Ministral 8B (Mistral AI): Llama with windows on the layers that `layer_types` names.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kMinistralSizes{.hidden = 4096,
                                   .layers = 32,
                                   .heads = 32,
                                   .kv_heads = 8,
                                   .intermediate = 14336,
                                   .vocabulary = 32000,
                                   .positions = 131072};

void BuildMinistral(DecoderBuilder& b) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&b](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(b.spec().windows[layer]);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

absl::Status ReadMinistralWindows(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 4096));
  return ReadWindows(config, window, 0, spec);
}

}  // namespace

absl::Status ReadMinistral(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kMinistralSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadMinistralWindows(config, spec));
  spec.build = BuildMinistral;
  return absl::OkStatus();
}

}  // namespace penstock::shard
