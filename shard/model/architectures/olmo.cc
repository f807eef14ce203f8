// OLMo (arXiv:2402.00838): Llama with LayerNorm without weights, and queries, keys and values that
// are bounded. OLMo 2 (arXiv:2501.00656): norms after the branches alone, and norms over all query
// and all key heads. OLMo 3: the same with windows on three layers of four, and RoPE scaling on the
// others.
#include <cstdint>
#include <optional>
#include <utility>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/head_norms.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kOlmoSizes{.hidden = 4096,
                              .layers = 32,
                              .heads = 32,
                              .intermediate = 11008,
                              .vocabulary = 50304,
                              .positions = 2048};

void AddMlp(DecoderBuilder& b) {
  b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
}

void BuildOlmo(DecoderBuilder& b, std::optional<float> clip) {
  b.Prefix({"model.", ""}, "embed_tokens.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.LayerNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    if (clip.has_value()) b.ClampQkv(*clip);
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.LayerNorm("post_attention_layernorm");
    AddMlp(b);
    b.AddToResidual();
  });
  b.LayerNorm("norm");
  b.Head();
}

void BuildOlmo2(DecoderBuilder& b, const RopeSpec& window_rope) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    const std::uint32_t window = b.spec().windows[layer];
    b.NoNorm();
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    AddWidthNorm(b, "self_attn.q_norm", "self_attn.k_norm");
    b.Rope(window > 0 ? window_rope : b.spec().rope);
    b.Attention(window);
    b.AttentionOutput("self_attn.o_proj");
    b.BranchRmsNorm("post_attention_layernorm");
    b.AddToResidual();
    b.NoNorm();
    AddMlp(b);
    b.BranchRmsNorm("post_feedforward_layernorm");
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

absl::Status ReadOlmoShared(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  return ReadSizes(config, kOlmoSizes, spec);
}

}  // namespace

absl::Status ReadOlmo(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(ReadOlmoShared(config, spec));
  spec.norm_eps = 1e-5f;
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::optional<float> clip, ReadClip(config));
  spec.build = [clip](DecoderBuilder& b) { BuildOlmo(b, clip); };
  return absl::OkStatus();
}

absl::Status ReadOlmo2(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(ReadOlmoShared(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  spec.build = [](DecoderBuilder& b) { BuildOlmo2(b, {}); };
  return absl::OkStatus();
}

absl::Status ReadOlmo3(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(ReadOlmoShared(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  constexpr double kTheta = 500000.0;
  PENSTOCK_RETURN_IF_ERROR(ReadRope(
      config, {.default_theta = kTheta, .layer_type = "sliding_attention", .scaling = false},
      spec));
  const RopeSpec window_rope = std::exchange(spec.rope, {});
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.default_theta = kTheta, .layer_type = "full_attention"}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadAlternatingWindows(config, 4, spec));
  spec.build = [window_rope](DecoderBuilder& b) { BuildOlmo2(b, window_rope); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
