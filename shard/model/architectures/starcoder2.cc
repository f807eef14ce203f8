// StarCoder2 (arXiv:2402.19173): LayerNorm, biases, an MLP without a gate, and a window.
#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kStarcoder2Sizes{.hidden = 3072,
                                    .layers = 30,
                                    .heads = 24,
                                    .kv_heads = 2,
                                    .intermediate = 12288,
                                    .vocabulary = 49152,
                                    .positions = 4096};

void BuildStarcoder2(DecoderBuilder& b, Activation activation) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&b, activation](std::uint32_t layer) {
    b.LayerNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(b.spec().windows[layer]);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.LayerNorm("post_attention_layernorm");
    b.Mlp("mlp.c_fc", activation, "mlp.c_proj");
    b.AddToResidual();
  });
  b.LayerNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadStarcoder2(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kStarcoder2Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "norm_epsilon", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 0));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, window, 0, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const Activation activation,
                            ReadActivation(config, "hidden_act", Activation::kGeluTanh));
  spec.build = [activation](DecoderBuilder& b) { BuildStarcoder2(b, activation); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
