// Code World Model (Meta): Llama with windows on three layers of four.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kCwmSizes{.hidden = 6144,
                             .layers = 64,
                             .heads = 48,
                             .kv_heads = 8,
                             .head_dim = 128,
                             .intermediate = 21504,
                             .vocabulary = 128256,
                             .positions = 131072};

void BuildCwm(DecoderBuilder& b) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&b](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(b.spec().windows[layer]);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// Without parameters the transformers class has those of its own, and no `rope_theta` changes them.
absl::Status ReadCwmRope(const ConfigReader& config, ModelSpec& spec) {
  constexpr double kTheta = 1e6;
  if (config.Has("rope_scaling") || config.Has("rope_parameters")) {
    return ReadRope(config, {.default_theta = kTheta}, spec);
  }
  spec.rope = {.type = RopeType::kLlama3,
               .dim = spec.head_dim,
               .theta = kTheta,
               .factor = 16.0,
               .low_freq_factor = 1.0,
               .high_freq_factor = 4.0,
               .original_max_position = 8192};
  return absl::OkStatus();
}

// The first of four layers is full unless `layer_types` says otherwise.
absl::Status ReadCwmWindows(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 8192));
  if (config.Has("layer_types")) return ReadWindows(config, window, 0, spec);
  for (std::uint32_t i = 0; i < spec.layers; ++i) spec.windows.push_back(i % 4 == 0 ? 0 : window);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadCwm(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kCwmSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadCwmRope(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadCwmWindows(config, spec));
  spec.build = BuildCwm;
  return absl::OkStatus();
}

}  // namespace penstock::shard
