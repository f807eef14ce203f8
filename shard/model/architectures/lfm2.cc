// LFM2 (Liquid AI, arXiv:2511.23404): gated short convolutions in most layers, and attention with
// norms of heads in the others. The larger models have a mixture of experts after the first layers,
// chosen by sigmoids.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"
#include "shard/model/short_conv.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers classes.
constexpr SizeKeys kLfm2{.hidden = 2560,
                         .layers = 32,
                         .heads = 32,
                         .kv_heads = 8,
                         .intermediate = 12288,
                         .vocabulary = 65536,
                         .positions = 128000};
constexpr SizeKeys kLfm2Moe{.hidden = 2048,
                            .layers = 32,
                            .heads = 32,
                            .kv_heads = 8,
                            .intermediate = 7168,
                            .vocabulary = 65536,
                            .positions = 128000};

struct Lfm2 {
  std::vector<bool> attends;       // by layer: attention, not a convolution
  std::uint32_t taps = 0;          // of a convolution
  std::uint32_t dense_layers = 0;  // the first ones have an MLP
  bool choice_bias = false;        // of the router
  Routing routing;
};

void BuildLfm2Operator(DecoderBuilder& b, const Lfm2& model, std::uint32_t layer) {
  b.RmsNorm("operator_norm");
  if (model.attends[layer]) {
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.HeadNorm("self_attn.q_layernorm", "self_attn.k_layernorm");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.out_proj");
  } else {
    AddShortConv(b, "conv", model.taps);
  }
  b.AddToResidual();
}

void BuildLfm2(DecoderBuilder& b, const Lfm2& model) {
  b.Prefix({"model.", ""}, "embedding_norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    BuildLfm2Operator(b, model, layer);
    b.RmsNorm("ffn_norm");
    if (layer < model.dense_layers) {
      b.GatedMlp("feed_forward.w1", "feed_forward.w3", "feed_forward.w2");
    } else {
      b.Router("feed_forward.gate", model.routing.experts);
      AddExperts(b, "feed_forward.experts", "w1", "w3", "w2", model.routing,
                 model.choice_bias ? "feed_forward.expert_bias" : "");
    }
    b.AddToResidual();
  });
  b.RmsNorm("embedding_norm");
  b.Head();
}

// `layer_types`, or `full_attn_idxs`: the layers with attention. Without both all layers have it.
absl::Status ReadLfm2Layers(const ConfigReader& config, const ModelSpec& spec, Lfm2& model) {
  constexpr char kTypes[] = "layer_types", kIndices[] = "full_attn_idxs";
  PENSTOCK_ASSIGN_OR_RETURN(const auto types, config.StringsOr(kTypes));
  if (types.empty() && config.Has(kIndices)) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto indices, config.Numbers(kIndices, 0, spec.layers - 1));
    model.attends.assign(spec.layers, false);
    for (const double index : indices) model.attends[static_cast<std::size_t>(index)] = true;
  } else if (types.empty()) {
    model.attends.assign(spec.layers, true);
  } else if (types.size() != spec.layers) {
    return config.Bad(kTypes, "a list of " + std::to_string(spec.layers) + " names");
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    model.attends.push_back(types[i] == "full_attention");
    if (types[i] != "full_attention" && types[i] != "conv") {
      return config.BadItem(kTypes, i, "full_attention or conv");
    }
  }
  if (std::find(model.attends.begin(), model.attends.end(), true) == model.attends.end()) {
    return config.Bad(types.empty() ? kIndices : kTypes, "such that a layer has attention");
  }
  PENSTOCK_ASSIGN_OR_RETURN(model.taps, config.IntegerOr("conv_L_cache", 3, 2, kMostTaps));
  return absl::OkStatus();
}

absl::Status ReadLfm2Shared(const ConfigReader& config, const SizeKeys& sizes, ModelSpec& spec,
                            Lfm2& model) {
  // The published files have a name of their own.
  PENSTOCK_ASSIGN_OR_RETURN(spec.tied_head, config.BoolOr("tie_embedding", true));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, sizes, spec));
  if (spec.hidden % spec.heads != 0) {
    return config.Bad("num_attention_heads",
                      "a divisor of `hidden_size` " + std::to_string(spec.hidden));
  }
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.default_theta = 1e6}, spec));
  spec.windows.assign(spec.layers, 0);
  return ReadLfm2Layers(config, spec, model);
}

// Sets the width of the MLP. It is two thirds of `block_ff_dim`, times `block_ffn_dim_multiplier`,
// rounded up to `block_multiple_of`. If `block_auto_adjust_ff_dim` is false, it is `block_ff_dim`.
absl::Status ReadLfm2Width(const ConfigReader& config, ModelSpec& spec) {
  constexpr std::uint32_t kMost = 1u << 24;
  PENSTOCK_ASSIGN_OR_RETURN(spec.intermediate,
                            config.IntegerOr("block_ff_dim", spec.intermediate, 2, kMost));
  PENSTOCK_ASSIGN_OR_RETURN(const bool adjusted, config.BoolOr("block_auto_adjust_ff_dim", true));
  if (!adjusted) return absl::OkStatus();
  std::uint32_t width = 2 * spec.intermediate / 3;
  if (!config.IsNull("block_ffn_dim_multiplier")) {
    PENSTOCK_ASSIGN_OR_RETURN(const float factor,
                              ReadMultiplier(config, "block_ffn_dim_multiplier"));
    PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t multiple,
                              config.IntegerOr("block_multiple_of", 256, 1, kMost));
    const double scaled = static_cast<double>(factor) * width;
    width = static_cast<std::uint32_t>(std::min<double>(scaled, kMost));
    width = (width + multiple - 1) / multiple * multiple;
  }
  spec.intermediate = std::max(1u, width);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadLfm2(const ConfigReader& config, ModelSpec& spec) {
  Lfm2 model;
  PENSTOCK_RETURN_IF_ERROR(ReadLfm2Shared(config, kLfm2, spec, model));
  PENSTOCK_RETURN_IF_ERROR(ReadLfm2Width(config, spec));
  model.dense_layers = spec.layers;
  spec.build = [model](DecoderBuilder& b) { BuildLfm2(b, model); };
  return absl::OkStatus();
}

absl::Status ReadLfm2Moe(const ConfigReader& config, ModelSpec& spec) {
  Lfm2 model;
  PENSTOCK_RETURN_IF_ERROR(ReadLfm2Shared(config, kLfm2Moe, spec, model));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 32, 4));
  model.routing.kind = Routing::Kind::kSigmoid;
  PENSTOCK_ASSIGN_OR_RETURN(model.routing.renormalized, config.BoolOr("norm_topk_prob", true));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing.scale, ReadMultiplier(config, "routed_scaling_factor"));
  PENSTOCK_ASSIGN_OR_RETURN(model.choice_bias, config.BoolOr("use_expert_bias", true));
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 1792, 1, 1u << 20));
  PENSTOCK_ASSIGN_OR_RETURN(model.dense_layers, config.IntegerOr("num_dense_layers", 2, 0, 4096));
  if (model.dense_layers == 0) spec.intermediate = 0;
  spec.build = [model](DecoderBuilder& b) { BuildLfm2(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
