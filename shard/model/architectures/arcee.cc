// AFM (Arcee): Llama whose MLP has no gate and squares what it keeps.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kArceeSizes{.hidden = 2560,
                               .layers = 32,
                               .heads = 32,
                               .intermediate = 18432,
                               .vocabulary = 32000,
                               .positions = 4096};

void BuildArcee(DecoderBuilder& b) {
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
    b.Mlp("mlp.up_proj", b.spec().activation, "mlp.down_proj");
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

absl::Status ReadArceeActivation(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(spec.activation,
                            ReadActivation(config, "hidden_act", Activation::kReluSquared));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadArcee(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadArceeActivation(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kArceeSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  spec.build = BuildArcee;
  return absl::OkStatus();
}

}  // namespace penstock::shard
