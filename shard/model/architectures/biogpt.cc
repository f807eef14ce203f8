// BioGPT (arXiv:2210.10341): LayerNorm, biases everywhere, a scaled embedding, and learned
// positions that begin at row 2.
#include <cmath>
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kBiogptSizes{.hidden = 1024,
                                .layers = 24,
                                .heads = 16,
                                .intermediate = 4096,
                                .vocabulary = 42384,
                                .positions = 1024};

struct BioGpt {
  Activation activation = Activation::kGelu;
  bool scaled = true;  // the embedding
};

void BuildBioGpt(DecoderBuilder& b, const BioGpt& model) {
  b.Prefix({"biogpt.", ""}, "layer_norm.weight");
  const float scale = model.scaled ? std::sqrt(static_cast<float>(b.spec().hidden)) : 1.0f;
  b.Embedding("embed_tokens.weight", "output_projection.weight", scale);
  b.LearnedPositions("embed_positions.weight", 2);
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

absl::Status ReadBioGpt(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kBiogptSizes, spec));
  spec.norm_eps = 1e-5f;  // whatever config.json says
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  BioGpt model;
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "hidden_act", Activation::kGelu));
  PENSTOCK_ASSIGN_OR_RETURN(model.scaled, config.BoolOr("scale_embedding", true));
  spec.build = [model](DecoderBuilder& b) { BuildBioGpt(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
