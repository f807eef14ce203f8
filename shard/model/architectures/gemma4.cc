// Gemma 4: as Gemma 3, with weights of norms around 1. Layers without a window have heads of their
// own size, and in some models their keys are their values too. The last layers may read the K and
// V of earlier ones. Each layer may have inputs of its own from the tokens, and experts beside its
// MLP. A number multiplies what each layer gives.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"
#include "shard/model/per_layer_inputs.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGemma4Sizes{.hidden = 2304,
                                .layers = 30,
                                .heads = 8,
                                .kv_heads = 4,
                                .head_dim = 256,
                                .intermediate = 9216,
                                .vocabulary = 262144,
                                .positions = 131072};

constexpr std::uint32_t kMaxHeadDim = 4096;
constexpr std::uint32_t kMaxWidth = 1u << 24;

struct Gemma4 {
  std::vector<HeadShape> heads;  // by layer, of all ranks
  RopeSpec window_rope;          // of layers with a window
  RopeSpec full_rope;
  bool values_are_keys = false;  // in layers without a window
  std::uint32_t own_layers = 0;  // those after them read the K and V of these
  bool double_wide = false;      // the MLPs of layers without K and V
  std::uint32_t per_layer = 0;   // inputs of a layer; 0 = there are none
  Activation activation = Activation::kGeluTanh;
  float logit_softcap = 0.0f;
  bool has_experts = false;
  Routing routing;
};

// The last layer before `end` with K and V of its own and the same kind of window.
std::uint32_t SourceOf(const ModelSpec& spec, std::uint32_t end, std::uint32_t layer) {
  std::uint32_t source = end;
  while (source-- > 0) {
    if (spec.windows[source] == spec.windows[layer]) return source;
  }
  return 0;  // ReadSharing has refused such a model
}

void BuildGemma4Attention(DecoderBuilder& b, const Gemma4& model, std::uint32_t layer) {
  const std::uint32_t window = b.spec().windows[layer];
  const RopeSpec& rope = window > 0 ? model.window_rope : model.full_rope;
  b.SetHeads(model.heads[layer]);
  b.RmsNorm("input_layernorm");
  if (layer < model.own_layers) {
    const bool same = model.values_are_keys && window == 0;
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", same ? "self_attn.k_proj" : "self_attn.v_proj");
    b.HeadNorm("self_attn.q_norm", "self_attn.k_norm", true);
    b.Rope(rope);
  } else {
    b.Queries("self_attn.q_proj");
    b.HeadNorm("self_attn.q_norm", "");
    b.RopeQueries(rope, SourceOf(b.spec(), model.own_layers, layer));
    for (const char* unread : {"k_proj.weight", "v_proj.weight", "k_norm.weight"}) {
      b.Ignore(".layers." + std::to_string(layer) + ".self_attn." + unread);
    }
  }
  b.Attention(window, 1.0f);
  b.AttentionOutput("self_attn.o_proj");
  b.BranchRmsNorm("post_attention_layernorm");
  b.AddToResidual();
}

void BuildGemma4Mlp(DecoderBuilder& b, const Gemma4& model, std::uint32_t layer) {
  const bool wide = model.double_wide && layer >= model.own_layers;
  b.SetMlpWidth(b.spec().intermediate * (wide ? 2 : 1));
  b.RmsNorm("pre_feedforward_layernorm");
  b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", model.activation);
  if (model.has_experts) {
    b.BranchRmsNorm("post_feedforward_layernorm_1");
    b.BeginSideBranch();
    b.RouterNorm("router.scale");
    b.Router("router.proj", model.routing.experts);
    b.RmsNorm("pre_feedforward_layernorm_2");
    AddExperts(b, "experts", "gate_proj", "up_proj", "down_proj", model.routing, "",
               model.activation, "router.per_expert_scale");
    b.BranchRmsNorm("post_feedforward_layernorm_2");
    b.JoinSideBranch();
  }
  b.BranchRmsNorm("post_feedforward_layernorm");
  b.AddToResidual();
}

void BuildGemma4(DecoderBuilder& b, const Gemma4& model) {
  b.Prefix({"model.language_model.", "model.", "language_model.model.", ""}, "norm.weight");
  for (const char* other : {"model.vision_tower.", "model.embed_vision.", "model.audio_tower.",
                            "model.embed_audio.", "vision_tower.", "audio_tower."}) {
    b.IgnorePrefix(other);
  }
  b.Embedding("embed_tokens.weight", "lm_head.weight",
              std::sqrt(static_cast<float>(b.spec().hidden)));
  if (model.per_layer > 0) {
    AddPerLayerInputs(b, "embed_tokens_per_layer", "per_layer_model_projection",
                      "per_layer_projection_norm", model.per_layer);
  }
  b.Layers("layers", [&](std::uint32_t layer) {
    BuildGemma4Attention(b, model, layer);
    BuildGemma4Mlp(b, model, layer);
    if (model.per_layer > 0) {
      AddPerLayerBranch(b, "per_layer_input_gate", model.activation, "per_layer_projection",
                        model.per_layer);
      b.BranchRmsNorm("post_per_layer_input_norm");
      b.AddToResidual();
    }
    b.ScaleStream("layer_scalar");
  });
  b.RmsNorm("norm");
  b.Head(1.0f, model.logit_softcap);
}

// The windows of all layers. Without `layer_types` each sixth layer is full. The last one always
// is.
absl::Status ReadLayerWindows(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window,
                            config.IntegerOr("sliding_window", 512, 1, 2147483647u));
  if (config.Has("layer_types")) {
    PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, window, 0, spec));
  } else {
    for (std::uint32_t i = 0; i < spec.layers; ++i) {
      spec.windows.push_back((i + 1) % 6 == 0 ? 0 : window);
    }
  }
  spec.windows.back() = 0;
  return absl::OkStatus();
}

absl::StatusOr<HeadShape> ReadHeadShape(const ConfigReader& config, const char* dim_key,
                                        std::uint32_t dim, const char* kv_key,
                                        std::uint32_t kv_heads, const ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(dim, config.IntegerOr(dim_key, dim, 2, kMaxHeadDim));
  if (dim % 2 != 0) return config.Bad(dim_key, "even");
  if (kv_key != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(kv_heads, config.IntegerOr(kv_key, kv_heads, 1, spec.heads));
    if (spec.heads % kv_heads != 0) {
      return config.Bad(kv_key, "a divisor of `num_attention_heads` " + std::to_string(spec.heads));
    }
  }
  return HeadShape{spec.heads, kv_heads, dim, dim};
}

// `per_layer_config` says what differs from the keys for all layers; without it `global_head_dim`
// and `num_global_key_value_heads` do so for layers without a window.
absl::Status ReadLayerHeads(const ConfigReader& config, ModelSpec& spec, Gemma4& model) {
  const HeadShape usual{spec.heads, spec.kv_heads, spec.head_dim, spec.head_dim};
  model.heads.assign(spec.layers, usual);
  PENSTOCK_ASSIGN_OR_RETURN(const auto by_layer, config.Object("per_layer_config"));
  for (std::uint32_t i = 0; i < spec.layers; ++i) {
    HeadShape& heads = model.heads[i];
    if (by_layer.has_value()) {
      PENSTOCK_ASSIGN_OR_RETURN(const auto own, by_layer->Object(std::to_string(i)));
      if (!own.has_value()) continue;
      PENSTOCK_ASSIGN_OR_RETURN(heads, ReadHeadShape(*own, "head_dim", spec.head_dim,
                                                     "num_key_value_heads", spec.kv_heads, spec));
    } else if (spec.windows[i] == 0) {
      const char* kv_key = model.values_are_keys ? "num_global_key_value_heads" : nullptr;
      PENSTOCK_ASSIGN_OR_RETURN(
          heads, ReadHeadShape(config, "global_head_dim", 512, kv_key, spec.kv_heads, spec));
    }
  }
  spec.full_kv_heads = model.heads.back().kv_heads;
  const bool fits = std::all_of(model.heads.begin(), model.heads.end(), [&](const auto& heads) {
    return heads.kv_heads == spec.kv_heads || heads.kv_heads == spec.full_kv_heads;
  });
  if (fits) return absl::OkStatus();
  return config.Bad("per_layer_config", "such that layers have one of two numbers of K/V heads");
}

// Layers that read the K and V of another one.
absl::Status ReadSharing(const ConfigReader& config, const ModelSpec& spec, Gemma4& model) {
  constexpr char kKey[] = "num_kv_shared_layers";
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t shared,
                            config.IntegerOr(kKey, 0, 0, spec.layers - 1));
  model.own_layers = spec.layers - shared;
  PENSTOCK_ASSIGN_OR_RETURN(model.double_wide, config.BoolOr("use_double_wide_mlp", false));
  for (std::uint32_t i = model.own_layers; i < spec.layers; ++i) {
    const std::uint32_t source = SourceOf(spec, model.own_layers, i);
    if (spec.windows[source] != spec.windows[i] || model.heads[source] != model.heads[i]) {
      return config.Bad(kKey, "so small that each of these layers has an earlier one of its kind");
    }
  }
  return absl::OkStatus();
}

// RoPE of layers without a window. The defaults of the class are for a file that says nothing.
absl::StatusOr<RopeSpec> ReadFullRope(const ConfigReader& config, std::uint32_t head_dim) {
  RopeSpec rope{.type = RopeType::kProportional, .dim = head_dim, .theta = 1e6};
  double part = 0.25;
  PENSTOCK_ASSIGN_OR_RETURN(const auto parameters, config.Object("rope_parameters"));
  if (parameters.has_value()) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto full, parameters->Object("full_attention"));
    if (!full.has_value()) {
      return parameters->Bad("full_attention", "the RoPE parameters of layers without a window");
    }
    PENSTOCK_ASSIGN_OR_RETURN(const std::string type, full->StringOr("rope_type", "default"));
    if (type != "default" && type != "proportional") {
      return full->Bad("rope_type", "one of default, proportional");
    }
    PENSTOCK_ASSIGN_OR_RETURN(rope.theta, full->Number("rope_theta", 1.0, 1e15));
    PENSTOCK_ASSIGN_OR_RETURN(part, full->NumberOr("partial_rotary_factor", 1.0, 0.0, 1.0));
    if (type == "default") {
      rope.type = RopeType::kDefault;
      rope.dim = static_cast<std::uint32_t>(head_dim * part);
      if (rope.dim >= 2 && rope.dim % 2 == 0) return rope;
      return full->Bad("partial_rotary_factor", "an even number of the dimensions of a head");
    }
    PENSTOCK_ASSIGN_OR_RETURN(rope.factor, full->NumberOr("factor", 1.0, 1.0, 1e6));
  }
  rope.turning = static_cast<std::uint32_t>(part * head_dim / 2);
  return rope;
}

absl::Status ReadGemma4Experts(const ConfigReader& config, ModelSpec& spec, Gemma4& model) {
  PENSTOCK_ASSIGN_OR_RETURN(model.has_experts, config.BoolOr("enable_moe_block", false));
  if (!model.has_experts) return absl::OkStatus();
  Routing& routing = model.routing;
  PENSTOCK_ASSIGN_OR_RETURN(routing.experts, config.Integer("num_experts", 1, 1u << 16));
  PENSTOCK_ASSIGN_OR_RETURN(routing.chosen, config.Integer("top_k_experts", 1, routing.experts));
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.Integer("moe_intermediate_size", 1, kMaxWidth));
  routing.renormalized = true;
  spec.experts = routing.experts;
  routing.score_scale = 1.0f / std::sqrt(static_cast<float>(spec.hidden));
  return absl::OkStatus();
}

absl::Status ReadPerLayerInputs(const ConfigReader& config, const ModelSpec& spec, Gemma4& model) {
  constexpr char kSize[] = "hidden_size_per_layer_input";
  constexpr char kVocabulary[] = "vocab_size_per_layer_input";
  if (config.IsNull(kSize)) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(model.per_layer, config.IntegerOr(kSize, 256, 0, 1u << 16));
  if (model.per_layer == 0) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t vocabulary,
                            config.IntegerOr(kVocabulary, 262144, 1, kMaxWidth));
  if (vocabulary == spec.vocabulary) return absl::OkStatus();
  return config.Bad(kVocabulary, "`vocab_size` " + std::to_string(spec.vocabulary));
}

absl::Status ReadMode(const ConfigReader& config) {
  constexpr char kKey[] = "use_bidirectional_attention";
  PENSTOCK_ASSIGN_OR_RETURN(const std::string mode, config.StringOr(kKey, ""));
  return mode == "all" ? config.Bad(kKey, "null or vision: this is a decoder") : absl::OkStatus();
}

}  // namespace

absl::Status ReadGemma4Text(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGemma4Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadMode(config));
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.theta = "", .layer_type = "sliding_attention"}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadLayerWindows(config, spec));
  Gemma4 model;
  PENSTOCK_ASSIGN_OR_RETURN(model.values_are_keys, config.BoolOr("attention_k_eq_v", false));
  PENSTOCK_RETURN_IF_ERROR(ReadLayerHeads(config, spec, model));
  PENSTOCK_RETURN_IF_ERROR(ReadSharing(config, spec, model));
  model.window_rope = spec.rope;
  PENSTOCK_ASSIGN_OR_RETURN(model.full_rope, ReadFullRope(config, model.heads.back().key_dim));
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "hidden_activation", Activation::kGeluTanh));
  PENSTOCK_RETURN_IF_ERROR(ReadPerLayerInputs(config, spec, model));
  PENSTOCK_RETURN_IF_ERROR(ReadGemma4Experts(config, spec, model));
  PENSTOCK_ASSIGN_OR_RETURN(const double cap,
                            config.NumberOr("final_logit_softcapping", 0.0, 0.0, 1e6));
  model.logit_softcap = static_cast<float>(cap);
  spec.build = [model](DecoderBuilder& b) { BuildGemma4(b, model); };
  return absl::OkStatus();
}

// The text part of a model with towers for pictures and sound.
absl::Status ReadGemma4(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto text, config.Object("text_config"));
  if (!text.has_value()) return config.Bad("text_config", "an object");
  return ReadGemma4Text(*text, spec);
}

}  // namespace penstock::shard
