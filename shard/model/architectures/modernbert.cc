// ModernBERT (arXiv:2412.13663): an encoder with RoPE, gated MLPs and norms before the branches.
// Most layers see a window around each token; their RoPE has other parameters.
#include <string>
#include <utility>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kModernbertSizes{.hidden = 768,
                                    .layers = 22,
                                    .heads = 12,
                                    .intermediate = 1152,
                                    .vocabulary = 50368,
                                    .positions = 8192};

struct ModernBert {
  Activation activation = Activation::kGelu;
  RopeSpec local_rope;
};

void BuildModernBert(DecoderBuilder& b, const ModernBert& model) {
  b.Prefix({"model.", ""}, "embeddings.tok_embeddings.weight");
  for (const char* head : {"head.", "decoder.", "classifier."}) b.IgnorePrefix(head);
  b.Embedding("embeddings.tok_embeddings.weight", "");
  b.StreamLayerNorm("embeddings.norm");
  b.Layers("layers", [&](std::uint32_t layer) {
    const std::uint32_t window = b.spec().windows[layer];
    if (layer > 0) b.LayerNorm("attn_norm");
    b.FusedQkv("attn.Wqkv");
    b.Rope(window > 0 ? model.local_rope : b.spec().rope);
    b.AttentionBothWays(window);
    b.AttentionOutput("attn.Wo");
    b.AddToResidual();
    b.LayerNorm("mlp_norm");
    b.FusedGatedMlp("mlp.Wi", "mlp.Wo", model.activation);
    b.AddToResidual();
  });
  b.LayerNorm("final_norm");
  b.Head();
}

// Each third layer is full unless config.json says otherwise. A token of another layer sees half of
// `local_attention` positions before it and as many after it.
absl::Status ReadLayers(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t local,
                            config.IntegerOr("local_attention", 128, 2, 1u << 30));
  const std::uint32_t window = local / 2 + 1;
  if (config.Has("layer_types")) return ReadWindows(config, window, 0, spec);
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t every,
                            config.IntegerOr("global_attn_every_n_layers", 3, 1, 4096));
  for (std::uint32_t i = 0; i < spec.layers; ++i) {
    spec.windows.push_back(i % every == 0 ? 0 : window);
  }
  return absl::OkStatus();
}

absl::Status ReadRopes(const ConfigReader& config, ModernBert& model, ModelSpec& spec) {
  const std::uint32_t positions = spec.max_position;
  PENSTOCK_RETURN_IF_ERROR(ReadRope(
      config, {.theta = "local_rope_theta", .layer_type = "sliding_attention", .scaling = false},
      spec));
  model.local_rope = std::exchange(spec.rope, {});
  spec.max_position = positions;
  return ReadRope(
      config,
      {.theta = "global_rope_theta", .default_theta = 160000.0, .layer_type = "full_attention"},
      spec);
}

absl::Status ReadClassifier(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string pooling,
                            config.StringOr("classifier_pooling", "cls"));
  if (pooling != "cls" && pooling != "mean") return config.Bad("classifier_pooling", "cls or mean");
  spec.class_pooling = pooling == "cls" ? PoolingKind::kCls : PoolingKind::kMean;
  PENSTOCK_ASSIGN_OR_RETURN(const Activation activation,
                            ReadActivation(config, "classifier_activation", Activation::kGelu));
  if (activation != Activation::kGelu) return config.Bad("classifier_activation", "gelu");
  spec.class_layers = {{.name = "head.dense",
                        .inputs = spec.hidden,
                        .outputs = spec.hidden,
                        .activation = HeadActivation::kGelu,
                        .norm = "head.norm"},
                       {.name = "classifier", .inputs = spec.hidden}};
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadModernBert(const ConfigReader& config, ModelSpec& spec) {
  spec.both_ways = true;
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kModernbertSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "norm_eps", 1e-5, spec));
  ModernBert model;
  PENSTOCK_RETURN_IF_ERROR(ReadRopes(config, model, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadLayers(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadClassifier(config, spec));
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "hidden_activation", Activation::kGelu));
  spec.build = [model](DecoderBuilder& b) { BuildModernBert(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
