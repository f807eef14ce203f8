// Apertus (Swiss AI, arXiv:2509.14233): Llama with norms of heads, and an MLP without a gate whose
// activation is an xIELU.
#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kApertusSizes{.hidden = 4096,
                                 .layers = 32,
                                 .heads = 32,
                                 .intermediate = 14336,
                                 .vocabulary = 131072,
                                 .positions = 65536};

// Without an activation the MLP has an xIELU.
void BuildApertus(DecoderBuilder& b, std::optional<Activation> activation) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Ignore(".mlp.act_fn.beta");  // constants
  b.Ignore(".mlp.act_fn.eps");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.RmsNorm("attention_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("feedforward_layernorm");
    if (activation.has_value()) {
      b.Mlp("mlp.up_proj", *activation, "mlp.down_proj");
    } else {
      b.XieluMlp("mlp.up_proj", "mlp.act_fn", "mlp.down_proj");
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// A config.json without RoPE parameters means the defaults of the transformers class.
absl::Status ReadApertusRope(const ConfigReader& config, ModelSpec& spec) {
  constexpr double kApertusTheta = 12e6;
  if (config.Has("rope_scaling") || config.Has("rope_parameters") || config.Has("rope_theta")) {
    return ReadRope(config, {.default_theta = kApertusTheta}, spec);
  }
  spec.rope = {.type = RopeType::kLlama3,
               .dim = spec.head_dim,
               .theta = kApertusTheta,
               .factor = 8.0,
               .original_max_position = 8192.0};
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadApertus(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kApertusSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadApertusRope(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  constexpr char kXielu[] = "xielu";
  std::optional<Activation> activation;
  PENSTOCK_ASSIGN_OR_RETURN(const std::string name, config.StringOr("hidden_act", kXielu));
  if (name != kXielu) {
    PENSTOCK_ASSIGN_OR_RETURN(activation, ReadActivation(config, "hidden_act", Activation::kSilu));
  }
  spec.build = [activation](DecoderBuilder& b) { BuildApertus(b, activation); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
