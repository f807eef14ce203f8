// Granite 3 (IBM): Llama with multipliers of the embedding, the branches, the products of queries
// and keys, and a divisor of the logits.
#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGraniteSizes{.hidden = 4096,
                                 .layers = 32,
                                 .heads = 32,
                                 .intermediate = 11008,
                                 .vocabulary = 32000,
                                 .positions = 2048};

struct Granite {
  float embedding = 1.0f;
  float residual = 1.0f;
  float attention = 1.0f;
  float logits = 1.0f;
};

void BuildGranite(DecoderBuilder& b, const Granite& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight", model.embedding);
  b.SetResidualScale(model.residual);
  b.Layers("layers", [&](std::uint32_t) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(0, model.attention);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head(model.logits);
}

}  // namespace

absl::Status ReadGranite(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGraniteSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  Granite model;
  PENSTOCK_ASSIGN_OR_RETURN(model.embedding, ReadMultiplier(config, "embedding_multiplier"));
  PENSTOCK_ASSIGN_OR_RETURN(model.residual, ReadMultiplier(config, "residual_multiplier"));
  PENSTOCK_ASSIGN_OR_RETURN(model.attention, ReadMultiplier(config, "attention_multiplier"));
  PENSTOCK_ASSIGN_OR_RETURN(const float divisor, ReadMultiplier(config, "logits_scaling"));
  model.logits = 1.0f / divisor;
  spec.build = [model](DecoderBuilder& b) { BuildGranite(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
