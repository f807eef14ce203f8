// MiniCPM 3 (OpenBMB): the latent attention of DeepSeek V2 with half-split RoPE, and multipliers of
// the embedding, the branches and the logits.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/latent_attention.h"
#include "shard/model/latent_config.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class. `head_dim` has no meaning.
constexpr SizeKeys kMiniCpm3Sizes{.hidden = 2560,
                                  .layers = 62,
                                  .heads = 40,
                                  .head_dim = 2,
                                  .intermediate = 6400,
                                  .vocabulary = 73448,
                                  .positions = 32768};

struct MiniCpm3 {
  LatentHeads heads;
  float embedding = 1.0f;
  float residual = 1.0f;
  float logits = 1.0f;
};

void BuildMiniCpm3(DecoderBuilder& b, const MiniCpm3& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight", model.embedding);
  b.SetResidualScale(model.residual);
  b.Layers("layers", [&](std::uint32_t) {
    b.RmsNorm("input_layernorm");
    AddLatentAttention(b, "self_attn", model.heads);
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head(model.logits);
}

// A null `scale_depth` or `dim_model_base` is a factor of 1.
absl::Status ReadMiniCpm3Scales(const ConfigReader& config, const ModelSpec& spec,
                                MiniCpm3& model) {
  PENSTOCK_ASSIGN_OR_RETURN(const double embedding, config.NumberOr("scale_emb", 12.0, 1e-6, 1e6));
  model.embedding = static_cast<float>(embedding);
  if (!config.IsNull("scale_depth")) {
    PENSTOCK_ASSIGN_OR_RETURN(const double depth, config.NumberOr("scale_depth", 1.4, 1e-6, 1e6));
    model.residual = static_cast<float>(depth / std::sqrt(static_cast<double>(spec.layers)));
  }
  if (!config.IsNull("dim_model_base")) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t base,
                              config.IntegerOr("dim_model_base", 256, 1, 1u << 20));
    model.logits = static_cast<float>(static_cast<double>(base) / spec.hidden);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadMiniCpm3(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kMiniCpm3Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  const LatentHeads absent{.query_latent = 768,
                           .latent = 256,
                           .nope = 64,
                           .rope = 32,
                           .value = std::max(1u, spec.hidden / spec.heads)};
  MiniCpm3 model;
  PENSTOCK_ASSIGN_OR_RETURN(model.heads, ReadLatentHeads(config, absent, spec));
  model.heads.interleaved = false;
  PENSTOCK_RETURN_IF_ERROR(ReadMiniCpm3Scales(config, spec, model));
  spec.build = [model](DecoderBuilder& b) { BuildMiniCpm3(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
