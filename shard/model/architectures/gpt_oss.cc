// gpt-oss (arXiv:2508.10925): attention sinks, windows in every second layer, and a mixture of
// experts that have biases and a bounded gate.

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGptOssSizes{.hidden = 2880,
                                .layers = 36,
                                .heads = 64,
                                .kv_heads = 8,
                                .head_dim = 64,
                                .intermediate = 2880,
                                .vocabulary = 201088,
                                .positions = 131072};

struct GptOss {
  Routing routing;
  BoundedGate gate;
};

void BuildGptOss(DecoderBuilder& b, const GptOss& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(b.spec().windows[layer]);
    b.Sinks("self_attn.sinks");
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.Router("mlp.router", model.routing.experts);
    AddInterleavedExperts(b, "mlp.experts", model.routing, model.gate);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// A config.json without RoPE parameters means the defaults of the transformers class.
absl::Status ReadGptOssRope(const ConfigReader& config, ModelSpec& spec) {
  constexpr double kTheta = 150000.0;
  constexpr std::uint32_t kOriginal = 4096, kFactor = 32;
  if (config.Has("rope_scaling") || config.Has("rope_parameters")) {
    return ReadRope(config, {.default_theta = kTheta}, spec);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const double theta, config.NumberOr("rope_theta", kTheta, 1.0, 1e15));
  spec.rope = DefaultYarn({.dim = spec.head_dim,
                           .theta = theta,
                           .factor = kFactor,
                           .original_max_position = kOriginal,
                           .truncate = false});
  return absl::OkStatus();
}

absl::Status ReadGptOssWindows(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 128));
  if (config.Has("layer_types")) return ReadWindows(config, window, 0, spec);
  for (std::uint32_t i = 0; i < spec.layers; ++i) {
    spec.windows.push_back(i % 2 == 0 ? window : 0);
  }
  return absl::OkStatus();
}

absl::Status ReadGptOssExperts(const ConfigReader& config, ModelSpec& spec, GptOss& model) {
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::uint32_t chosen,
      config.IntegerOr("experts_per_token", 4, 1, 1u << 16));  // an older name
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 128, chosen));
  // The softmax over the chosen experts: that over all, divided by the sum of those chosen.
  model.routing.renormalized = true;
  PENSTOCK_ASSIGN_OR_RETURN(const double limit, config.NumberOr("swiglu_limit", 7.0, 1e-3, 1e6));
  PENSTOCK_ASSIGN_OR_RETURN(const double alpha, config.NumberOr("swiglu_alpha", 1.702, 1e-3, 1e3));
  model.gate = {static_cast<float>(alpha), static_cast<float>(limit)};
  spec.experts = model.routing.experts;
  spec.expert_intermediate = spec.intermediate;
  spec.intermediate = 0;  // no layer has an MLP
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGptOss(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGptOssSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadGptOssRope(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadGptOssWindows(config, spec));
  GptOss model;
  PENSTOCK_RETURN_IF_ERROR(ReadGptOssExperts(config, spec, model));
  spec.build = [model](DecoderBuilder& b) { BuildGptOss(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
