// Falcon (arXiv:2311.16867): LayerNorm, attention beside the MLP, and one K/V head (7B) or groups
// of query heads (40B, 11B). Falcon-RW has linear biases of attention in place of RoPE, and its
// branches follow each other.
#include <cmath>
#include <cstdint>

#include "common/status.h"
#include "shard/model/alibi.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kFalconSizes{.hidden = 4544,
                                .layers = 32,
                                .heads = 71,
                                .vocabulary = 65024,
                                .positions = 2048,
                                .intermediate_per_hidden = 4,
                                .intermediate_key = "ffn_hidden_size"};

struct Falcon {
  bool parallel = true;    // attention and MLP read the same residual stream
  bool two_norms = false;  // of these
  bool alibi = false;
  Activation activation = Activation::kGelu;
};

void AddFalconAttention(DecoderBuilder& b, const Falcon& model) {
  b.QkvByHead("self_attention.query_key_value");
  model.alibi ? b.NoRope() : b.Rope();
  b.Attention(0);
  if (model.alibi) {
    const float scale = 1.0f / std::sqrt(static_cast<float>(b.spec().head_dim));
    b.LinearBiases(BloomSlopes(b.spec().heads), scale);
  }
  b.AttentionOutput("self_attention.dense");
}

void BuildFalcon(DecoderBuilder& b, const Falcon& model) {
  b.Prefix({"transformer.", ""}, "ln_f.weight");
  b.Embedding("word_embeddings.weight", "lm_head.weight");
  b.Layers("h", [&](std::uint32_t) {
    b.LayerNorm(model.two_norms ? "ln_attn" : "input_layernorm");
    AddFalconAttention(b, model);
    if (!model.parallel) {
      b.AddToResidual();
      b.LayerNorm("post_attention_layernorm");
    }
    if (model.two_norms) b.LayerNorm("ln_mlp");
    b.Mlp("mlp.dense_h_to_4h", model.activation, "mlp.dense_4h_to_h");
    b.AddToResidual();
  });
  b.LayerNorm("ln_f");
  b.Head();
}

// `new_decoder_architecture` is that of Falcon 40B.
absl::Status ReadForm(const ConfigReader& config, ModelSpec& spec, Falcon& model) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool groups, config.BoolOr("new_decoder_architecture", false));
  PENSTOCK_ASSIGN_OR_RETURN(const bool one_key, config.BoolOr("multi_query", true));
  PENSTOCK_ASSIGN_OR_RETURN(const bool parallel, config.BoolOr("parallel_attn", true));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t norms,
                            config.IntegerOr("num_ln_in_parallel_attn", groups ? 2 : 1, 1, 2));
  model.parallel = groups || parallel;
  model.two_norms = groups && norms == 2;
  spec.kv_heads = one_key && !groups ? 1 : spec.heads;
  return groups ? ReadKvHeads(config, "num_kv_heads", spec) : absl::OkStatus();
}

}  // namespace

absl::Status ReadFalcon(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kFalconSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_epsilon", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  Falcon model;
  PENSTOCK_RETURN_IF_ERROR(ReadForm(config, spec, model));
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "activation", Activation::kGelu));
  PENSTOCK_ASSIGN_OR_RETURN(model.alibi, config.BoolOr("alibi", false));
  if (!model.alibi) PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  spec.build = [model](DecoderBuilder& b) { BuildFalcon(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
