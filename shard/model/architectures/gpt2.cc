// GPT-2 (Radford et al., 2019): LayerNorm, learned positions, matrices stored as [inputs, outputs].
#include <cmath>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGpt2Sizes{.hidden = 768,
                              .layers = 12,
                              .heads = 12,
                              .vocabulary = 50257,
                              .positions = 1024,
                              .intermediate_per_hidden = 4,
                              .hidden_key = "n_embd",
                              .layers_key = "n_layer",
                              .heads_key = "n_head",
                              .intermediate_key = "n_inner",
                              .positions_key = "n_positions"};

struct Gpt2 {
  Activation activation = Activation::kGeluTanh;
  bool scaled = true;            // products of queries and keys
  bool scaled_by_layer = false;  // divided by the number of the layer, too
};

void BuildGpt2(DecoderBuilder& b, const Gpt2& model) {
  b.Prefix({"transformer.", ""}, "ln_f.weight");
  b.Embedding("wte.weight", "lm_head.weight");
  b.LearnedPositions("wpe.weight", 0);
  b.SetTransposed();
  b.Layers("h", [&](std::uint32_t layer) {
    b.LayerNorm("ln_1");
    b.FusedQkv("attn.c_attn");
    b.NoRope();
    float scale = model.scaled ? 1.0f / std::sqrt(static_cast<float>(b.spec().head_dim)) : 1.0f;
    if (model.scaled_by_layer) scale /= static_cast<float>(layer + 1);
    b.Attention(0, scale);
    b.AttentionOutput("attn.c_proj");
    b.AddToResidual();
    b.LayerNorm("ln_2");
    b.Mlp("mlp.c_fc", model.activation, "mlp.c_proj");
    b.AddToResidual();
  });
  b.LayerNorm("ln_f");
  b.Head();
}

}  // namespace

absl::Status ReadGpt2(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGpt2Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_epsilon", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  Gpt2 model;
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "activation_function", Activation::kGeluTanh));
  PENSTOCK_ASSIGN_OR_RETURN(model.scaled, config.BoolOr("scale_attn_weights", true));
  PENSTOCK_ASSIGN_OR_RETURN(model.scaled_by_layer,
                            config.BoolOr("scale_attn_by_inverse_layer_idx", false));
  PENSTOCK_ASSIGN_OR_RETURN(const bool cross, config.BoolOr("add_cross_attention", false));
  if (cross) return config.Bad("add_cross_attention", "false: this is a decoder alone");
  spec.build = [model](DecoderBuilder& b) { BuildGpt2(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
