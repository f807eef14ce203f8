// MPT (MosaicML): LayerNorm without biases, linear biases of attention in place of positions, and
// queries, keys and values that may be bounded.
#include <cstdint>
#include <optional>

#include "common/status.h"
#include "shard/model/alibi.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kMptSizes{.hidden = 2048,
                             .layers = 24,
                             .heads = 16,
                             .vocabulary = 50368,
                             .positions = 2048,
                             .intermediate_per_hidden = 4,
                             .hidden_key = "d_model",
                             .layers_key = "n_layers",
                             .heads_key = "n_heads",
                             .positions_key = "max_seq_len"};

struct Mpt {
  std::optional<float> clip;
  std::optional<float> scale;  // of the products of queries and keys
};

void BuildMpt(DecoderBuilder& b, const Mpt& model) {
  b.Prefix({"transformer.", ""}, "norm_f.weight");
  b.Embedding("wte.weight", "lm_head.weight");
  b.Layers("blocks", [&](std::uint32_t) {
    b.LayerNorm("norm_1");
    b.FusedQkv("attn.Wqkv");
    if (model.clip.has_value()) b.ClampQkv(*model.clip);
    b.NoRope();
    b.Attention(0, model.scale);
    b.LinearBiases(MptSlopes(b.spec().heads));
    b.AttentionOutput("attn.out_proj");
    b.AddToResidual();
    b.LayerNorm("norm_2");
    b.Mlp("ffn.up_proj", Activation::kGelu, "ffn.down_proj");
    b.AddToResidual();
  });
  b.LayerNorm("norm_f");
  b.Head();
}

// What transformers ignores or does not have must be as in the published models.
absl::Status ReadAttention(const ConfigReader& config, Mpt& model) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool alibi, config.BoolOr("alibi", true));
  if (!alibi) return config.Bad("alibi", "true: learned positions of MPT are not served");
  for (const char* key : {"qk_ln", "prefix_lm"}) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool set, config.BoolOr(key, false));
    if (set) return config.Bad(key, "false");
  }
  PENSTOCK_ASSIGN_OR_RETURN(model.clip, ReadClip(config));
  if (!config.Has("softmax_scale")) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const double scale, config.Number("softmax_scale", 1e-6, 1e6));
  model.scale = static_cast<float>(scale);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadMpt(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kMptSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_epsilon", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  Mpt model;
  PENSTOCK_ASSIGN_OR_RETURN(const auto attention, config.Object("attn_config"));
  if (attention.has_value()) PENSTOCK_RETURN_IF_ERROR(ReadAttention(*attention, model));
  spec.build = [model](DecoderBuilder& b) { BuildMpt(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
