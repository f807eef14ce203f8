// GPT-NeoX (arXiv:2204.06745), also known as Pythia: LayerNorm, biases, heads that are rotated in
// part, an MLP without a gate, and attention beside the MLP.

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGptNeoxSizes{.hidden = 6144,
                                 .layers = 44,
                                 .heads = 64,
                                 .intermediate = 24576,
                                 .vocabulary = 50432,
                                 .positions = 2048};

struct GptNeox {
  bool parallel_residual = true;
  Activation activation = Activation::kGelu;
};

void BuildGptNeox(DecoderBuilder& b, const GptNeox& model) {
  b.Prefix({"gpt_neox.", ""}, "final_layer_norm.weight");
  b.Ignore(".attention.bias");  // the causal mask
  b.Embedding("embed_in.weight", "embed_out.weight");
  b.Layers("layers", [&b, &model](std::uint32_t) {
    b.LayerNorm("input_layernorm");
    b.QkvByHead("attention.query_key_value");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("attention.dense");
    // In parallel: x = x + attention(norm(x)) + mlp(norm(x)). Else the MLP reads the sum.
    if (!model.parallel_residual) b.AddToResidual();
    b.LayerNorm("post_attention_layernorm");
    b.Mlp("mlp.dense_h_to_4h", model.activation, "mlp.dense_4h_to_h");
    b.AddToResidual();
  });
  b.LayerNorm("final_layer_norm");
  b.Head();
}

}  // namespace

absl::Status ReadGptNeox(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGptNeoxSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(
      config, {.theta = "rotary_emb_base", .part = "rotary_pct", .default_part = 0.25}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  GptNeox model;
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "hidden_act", Activation::kGelu));
  PENSTOCK_ASSIGN_OR_RETURN(model.parallel_residual, config.BoolOr("use_parallel_residual", true));
  spec.build = [model](DecoderBuilder& b) { BuildGptNeox(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
