// BLOOM (arXiv:2211.05100): LayerNorm, biases, a norm of the embedding, and linear biases of
// attention in place of positions.
#include <cstdint>

#include "common/status.h"
#include "shard/model/alibi.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kBloomSizes{.hidden = 64,
                               .layers = 2,
                               .heads = 8,
                               .vocabulary = 250880,
                               .positions = 2048,
                               .intermediate_per_hidden = 4,
                               .layers_key = "n_layer",
                               .heads_key = "n_head",
                               .positions_key = "seq_length"};

void BuildBloom(DecoderBuilder& b) {
  b.Prefix({"transformer.", ""}, "ln_f.weight");
  b.Embedding("word_embeddings.weight", "lm_head.weight");
  b.StreamLayerNorm("word_embeddings_layernorm");
  b.Layers("h", [&b](std::uint32_t) {
    b.LayerNorm("input_layernorm");
    b.QkvByHead("self_attention.query_key_value");
    b.NoRope();
    b.Attention(0);
    b.LinearBiases(BloomSlopes(b.spec().heads));
    b.AttentionOutput("self_attention.dense");
    b.AddToResidual();
    b.LayerNorm("post_attention_layernorm");
    b.Mlp("mlp.dense_h_to_4h", Activation::kGeluTanh, "mlp.dense_4h_to_h");
    b.AddToResidual();
  });
  b.LayerNorm("ln_f");
  b.Head();
}

// The first files have other names of the sizes.
SizeKeys KeysOf(const ConfigReader& config) {
  SizeKeys keys = kBloomSizes;
  if (config.Has("n_embed")) keys.hidden_key = "n_embed";
  if (config.Has("num_hidden_layers")) keys.layers_key = "num_hidden_layers";
  if (config.Has("num_attention_heads")) keys.heads_key = "num_attention_heads";
  return keys;
}

}  // namespace

absl::Status ReadBloom(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, KeysOf(config), spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_epsilon", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  constexpr char kAfterNorm[] = "apply_residual_connection_post_layernorm";
  PENSTOCK_ASSIGN_OR_RETURN(const bool after_norm, config.BoolOr(kAfterNorm, false));
  if (after_norm) return config.Bad(kAfterNorm, "false: this form of BLOOM is not served");
  spec.build = BuildBloom;
  return absl::OkStatus();
}

}  // namespace penstock::shard
