// Llama 4 (Meta): layers that rotate heads as pairs of neighbours, normalise them after that and
// see chunks of the text alternate with layers that know no positions and see all of it; there
// queries grow with the position. Experts are chosen by a sigmoid that multiplies their input, and
// there is a shared one.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"
#include "shard/model/head_norms.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kLlama4Sizes{.hidden = 5120,
                                .layers = 48,
                                .heads = 40,
                                .kv_heads = 8,
                                .head_dim = 128,
                                .intermediate = 16384,
                                .vocabulary = 202048,
                                .positions = 131072,
                                .intermediate_key = "intermediate_size_mlp"};

struct Llama4 {
  std::vector<bool> rotated;  // by layer
  std::vector<bool> chunked;
  std::vector<bool> sparse;
  std::uint32_t chunk = 0;
  bool head_norms = false;
  QueryGrowth growth;  // of layers that are not rotated
  Routing routing;
};

void BuildLlama4Attention(DecoderBuilder& b, const Llama4& model, std::uint32_t layer) {
  b.RmsNorm("input_layernorm");
  b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  if (model.rotated[layer] && model.head_norms) {
    b.Rotate(b.spec().rope);
    AddPlainHeadNorm(b);
    b.NoRope();
  } else if (model.rotated[layer]) {
    b.Rope();
  } else {
    b.NoRope();
    b.GrowQueries(model.growth);
  }
  b.Attention(0);
  if (model.chunked[layer]) b.Chunk(model.chunk);
  b.AttentionOutput("self_attn.o_proj");
  b.AddToResidual();
}

void BuildLlama4Mlp(DecoderBuilder& b, const Llama4& model, std::uint32_t layer) {
  b.RmsNorm("post_attention_layernorm");
  if (model.sparse[layer]) {
    b.Router("feed_forward.router", model.routing.experts);
    constexpr bool kTransposed = true, kWeighInputs = true;
    AddStackedExperts(
        b, {"feed_forward.experts.gate_up_proj", "feed_forward.experts.down_proj", kTransposed},
        model.routing, kWeighInputs);
    const std::string shared = "feed_forward.shared_expert.";
    AddSharedExpert(b, shared + "gate_proj", shared + "up_proj", shared + "down_proj");
  } else {
    b.GatedMlp("feed_forward.gate_proj", "feed_forward.up_proj", "feed_forward.down_proj");
  }
  b.AddToResidual();
}

void BuildLlama4(DecoderBuilder& b, const Llama4& model) {
  // Beside the vision tower even the head has a prefix.
  b.Prefix({"language_model."}, "model.norm.weight");
  const bool wrapped = b.Has("model.norm.weight");
  const std::string prefix = wrapped ? "language_model." : "";
  b.Prefix({prefix + "model.", ""}, "norm.weight");
  b.IgnorePrefix("vision_model.");
  b.IgnorePrefix("multi_modal_projector.");
  b.Embedding("embed_tokens.weight", prefix + "lm_head.weight");
  b.SetInterleaved();
  b.Layers("layers", [&](std::uint32_t layer) {
    BuildLlama4Attention(b, model, layer);
    BuildLlama4Mlp(b, model, layer);
  });
  b.RmsNorm("norm");
  b.Head();
}

// `no_rope_layers[i]` is 1 for a layer that is rotated.
absl::Status ReadLlama4Rotated(const ConfigReader& config, std::uint32_t layers, Llama4& model) {
  PENSTOCK_ASSIGN_OR_RETURN(model.rotated, config.FlagsOr("no_rope_layers"));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t interval,
                            config.IntegerOr("no_rope_layer_interval", 4, 1, 4096));
  if (!model.rotated.empty() && model.rotated.size() < layers) {
    return config.Bad("no_rope_layers", "a list of " + std::to_string(layers) + " flags");
  }
  const bool listed = !model.rotated.empty();
  for (std::uint32_t i = 0; i < layers && !listed; ++i) {
    model.rotated.push_back((i + 1) % interval != 0);
  }
  return absl::OkStatus();
}

absl::Status ReadChunks(const ConfigReader& config, std::uint32_t layers, Llama4& model) {
  PENSTOCK_ASSIGN_OR_RETURN(model.chunk,
                            config.IntegerOr("attention_chunk_size", 8192, 1, 2147483647u));
  model.chunked = model.rotated;
  PENSTOCK_ASSIGN_OR_RETURN(const auto types, config.StringsOr("layer_types"));
  if (types.empty()) return absl::OkStatus();
  if (types.size() != layers) {
    return config.Bad("layer_types", "a list of " + std::to_string(layers) + " names");
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    model.chunked[i] = types[i] == "chunked_attention";
    if (model.chunked[i] || types[i] == "full_attention") continue;
    return config.BadItem("layer_types", i, "full_attention or chunked_attention");
  }
  return absl::OkStatus();
}

// The first files have a number for the flag.
absl::Status ReadGrowth(const ConfigReader& config, Llama4& model) {
  constexpr char kFlag[] = "attn_temperature_tuning";
  const auto number = config.Integer(kFlag, 0, 1u << 20);
  bool grows = number.ok() && *number != 0;
  if (!number.ok()) {
    PENSTOCK_ASSIGN_OR_RETURN(grows, config.BoolOr(kFlag, true));
  }
  model.growth.first = 1;
  PENSTOCK_ASSIGN_OR_RETURN(model.growth.period,
                            config.IntegerOr("floor_scale", 8192, 1, 2147483647u));
  PENSTOCK_ASSIGN_OR_RETURN(const double rate, config.NumberOr("attn_scale", 0.1, 0.0, 1e3));
  if (grows) model.growth.rate = static_cast<float>(rate);
  return absl::OkStatus();
}

absl::Status ReadLlama4Experts(const ConfigReader& config, ModelSpec& spec, Llama4& model) {
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 16, 1));
  model.routing.kind = Routing::Kind::kSigmoid;
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("intermediate_size", 8192, 1, 1u << 20));
  spec.shared_intermediate = spec.expert_intermediate;
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t step,
                            config.IntegerOr("interleave_moe_layer_step", 1, 1, 4096));
  for (std::uint32_t i = 0; i < spec.layers; ++i) model.sparse.push_back((i + 1) % step == 0);
  if (config.Has("moe_layers")) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto listed, config.Numbers("moe_layers", 0.0, 4096.0));
    model.sparse.assign(spec.layers, false);
    for (const double layer : listed) {
      if (layer < spec.layers) model.sparse[static_cast<std::size_t>(layer)] = true;
    }
  }
  const auto dense = std::find(model.sparse.begin(), model.sparse.end(), false);
  if (dense == model.sparse.end()) spec.intermediate = 0;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadLlama4Text(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kLlama4Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.default_theta = 500000.0}, spec));
  spec.windows.assign(spec.layers, 0);
  Llama4 model;
  PENSTOCK_RETURN_IF_ERROR(ReadLlama4Rotated(config, spec.layers, model));
  PENSTOCK_RETURN_IF_ERROR(ReadChunks(config, spec.layers, model));
  PENSTOCK_RETURN_IF_ERROR(ReadGrowth(config, model));
  PENSTOCK_RETURN_IF_ERROR(ReadLlama4Experts(config, spec, model));
  PENSTOCK_ASSIGN_OR_RETURN(model.head_norms, config.BoolOr("use_qk_norm", true));
  spec.build = [model](DecoderBuilder& b) { BuildLlama4(b, model); };
  return absl::OkStatus();
}

// The text part of a model with a vision tower.
absl::Status ReadLlama4(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto text, config.Object("text_config"));
  if (!text.has_value()) return config.Bad("text_config", "an object");
  return ReadLlama4Text(*text, spec);
}

}  // namespace penstock::shard
