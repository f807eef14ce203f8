// SmolLM3 (Hugging Face): Llama with layers that know no positions.
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kSmollm3Sizes{.hidden = 2048,
                                 .layers = 36,
                                 .heads = 16,
                                 .kv_heads = 4,
                                 .intermediate = 11008,
                                 .vocabulary = 128256,
                                 .positions = 32768};

void BuildSmolLm3(DecoderBuilder& b, const std::vector<bool>& rotated) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    rotated[layer] ? b.Rope() : b.NoRope();
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

// `no_rope_layers[i]` is 1 for a layer that is rotated. Without the list every
// `no_rope_layer_interval`th layer is not.
absl::StatusOr<std::vector<bool>> ReadSmollm3Rotated(const ConfigReader& config,
                                                     std::uint32_t layers) {
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<bool> rotated, config.FlagsOr("no_rope_layers"));
  if (rotated.size() >= layers) return rotated;
  if (!rotated.empty()) {
    return config.Bad("no_rope_layers", "a list of " + std::to_string(layers) + " flags");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t interval,
                            config.IntegerOr("no_rope_layer_interval", 4, 1, 4096));
  for (std::uint32_t i = 0; i < layers; ++i) rotated.push_back((i + 1) % interval != 0);
  return rotated;
}

// With `use_sliding_window` the layers that are not rotated have the window.
absl::Status ReadSmolLm3Windows(const ConfigReader& config, const std::vector<bool>& rotated,
                                ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool use, config.BoolOr("use_sliding_window", false));
  std::uint32_t window = 0;
  if (use) {
    PENSTOCK_ASSIGN_OR_RETURN(window, ReadSlidingWindow(config, 0));
  }
  if (config.Has("layer_types")) return ReadWindows(config, window, 0, spec);
  for (std::uint32_t i = 0; i < spec.layers; ++i) {
    spec.windows.push_back(rotated[i] ? 0 : window);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadSmolLm3(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kSmollm3Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.default_theta = 2e6}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<bool> rotated,
                            ReadSmollm3Rotated(config, spec.layers));
  PENSTOCK_RETURN_IF_ERROR(ReadSmolLm3Windows(config, rotated, spec));
  spec.build = [rotated](DecoderBuilder& b) { BuildSmolLm3(b, rotated); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
