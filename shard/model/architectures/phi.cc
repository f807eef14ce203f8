// Phi-1.5 and Phi-2 (arXiv:2309.05463): LayerNorm, biases everywhere, heads that are rotated in
// part, and attention beside the MLP.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/head_norms.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kPhiSizes{.hidden = 2048,
                             .layers = 24,
                             .heads = 32,
                             .intermediate = 8192,
                             .vocabulary = 51200,
                             .positions = 2048};

struct Phi {
  bool head_norms = false;
  Activation activation = Activation::kGeluTanh;
};

void BuildPhi(DecoderBuilder& b, const Phi& model) {
  b.Prefix({"model.", ""}, "final_layernorm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.LayerNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    if (model.head_norms) {
      AddHeadLayerNorm(b, "self_attn.q_layernorm", "self_attn.k_layernorm", HeadWeights::kShared);
    }
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.dense");
    b.Mlp("mlp.fc1", model.activation, "mlp.fc2");
    b.AddToResidual();
  });
  b.LayerNorm("final_layernorm");
  b.Head();
}

}  // namespace

absl::Status ReadPhi(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kPhiSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.part = "partial_rotary_factor", .default_part = 0.5}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  Phi model;
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "hidden_act", Activation::kGeluTanh));
  PENSTOCK_ASSIGN_OR_RETURN(model.head_norms, config.BoolOr("qk_layernorm", false));
  spec.build = [model](DecoderBuilder& b) { BuildPhi(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
