// XGLM (arXiv:2112.10668): LayerNorm, biases everywhere, a scaled embedding, and sines and cosines
// of the position, which begins at 2.
#include <cmath>
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kXglmSizes{.hidden = 1024,
                              .layers = 24,
                              .heads = 16,
                              .intermediate = 4096,
                              .vocabulary = 256008,
                              .positions = 2048,
                              .hidden_key = "d_model",
                              .layers_key = "num_layers",
                              .heads_key = "attention_heads",
                              .intermediate_key = "ffn_dim"};

struct Xglm {
  Activation activation = Activation::kGelu;
  bool scaled = true;  // the embedding
};

void BuildXglm(DecoderBuilder& b, const Xglm& model) {
  b.Prefix({"model.", ""}, "layer_norm.weight");
  b.Ignore("embed_positions.weights");
  const float scale = model.scaled ? std::sqrt(static_cast<float>(b.spec().hidden)) : 1.0f;
  b.Embedding("embed_tokens.weight", "lm_head.weight", scale);
  b.Sinusoids(2);
  b.Layers("layers", [&](std::uint32_t) {
    b.LayerNorm("self_attn_layer_norm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.NoRope();
    b.Attention(0);
    b.AttentionOutput("self_attn.out_proj");
    b.AddToResidual();
    b.LayerNorm("final_layer_norm");
    b.Mlp("fc1", model.activation, "fc2");
    b.AddToResidual();
  });
  b.LayerNorm("layer_norm");
  b.Head();
}

}  // namespace

absl::Status ReadXglm(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kXglmSizes, spec));
  if (spec.hidden < 4 || spec.hidden % 2 != 0) return config.Bad("d_model", "even, and at least 4");
  spec.norm_eps = 1e-5f;
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  Xglm model;
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "activation_function", Activation::kGelu));
  PENSTOCK_ASSIGN_OR_RETURN(model.scaled, config.BoolOr("scale_embedding", true));
  PENSTOCK_ASSIGN_OR_RETURN(const bool cross, config.BoolOr("add_cross_attention", false));
  if (cross) return config.Bad("add_cross_attention", "false: this is a decoder alone");
  spec.build = [model](DecoderBuilder& b) { BuildXglm(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
