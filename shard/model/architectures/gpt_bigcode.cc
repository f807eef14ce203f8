// StarCoder and SantaCoder (arXiv:2305.06161): GPT-2 with one K/V head, GELU by tanh, and matrices
// as linear layers have them.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGptBigcodeSizes{.hidden = 768,
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

struct GptBigCode {
  Activation activation = Activation::kGeluTanh;
  bool one_key = true;  // one K/V head
  bool scaled = true;   // products of queries and keys
};

void BuildGptBigCode(DecoderBuilder& b, const GptBigCode& model) {
  b.Prefix({"transformer.", ""}, "ln_f.weight");
  b.Embedding("wte.weight", "lm_head.weight");
  b.LearnedPositions("wpe.weight", 0);
  b.Layers("h", [&](std::uint32_t) {
    b.LayerNorm("ln_1");
    b.QkvByHead("attn.c_attn");
    b.NoRope();
    model.scaled ? b.Attention(0) : b.Attention(0, 1.0f);
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

absl::Status ReadGptBigCode(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGptBigcodeSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_epsilon", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  GptBigCode model;
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "activation_function", Activation::kGeluTanh));
  PENSTOCK_ASSIGN_OR_RETURN(model.scaled, config.BoolOr("scale_attn_weights", true));
  PENSTOCK_ASSIGN_OR_RETURN(model.one_key, config.BoolOr("multi_query", true));
  PENSTOCK_ASSIGN_OR_RETURN(const bool cross, config.BoolOr("add_cross_attention", false));
  if (cross) return config.Bad("add_cross_attention", "false: this is a decoder alone");
  spec.kv_heads = model.one_key ? 1 : spec.heads;
  spec.build = [model](DecoderBuilder& b) { BuildGptBigCode(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
