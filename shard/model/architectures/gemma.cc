// Gemma (arXiv:2403.08295), Gemma 2 (arXiv:2408.00118) and Gemma 3 (arXiv:2503.19786): RMS norms
// with weights around 0, a scaled embedding, and GELU gates. From Gemma 2 on each branch has a norm
// before and after it, and layers with a window alternate with full ones. Gemma 2 has softcaps.
// Gemma 3 has none of attention, norms of heads and other RoPE parameters in layers with a window.
// VaultGemma (arXiv:2510.15001) is Gemma 2 without the norms after the branches.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers classes.
constexpr SizeKeys kGemma{.hidden = 3072,
                          .layers = 28,
                          .heads = 16,
                          .kv_heads = 16,
                          .head_dim = 256,
                          .intermediate = 24576,
                          .vocabulary = 256000,
                          .positions = 8192};
constexpr SizeKeys kGemma2{.hidden = 2304,
                           .layers = 26,
                           .heads = 8,
                           .kv_heads = 4,
                           .head_dim = 256,
                           .intermediate = 9216,
                           .vocabulary = 256000,
                           .positions = 8192};
constexpr SizeKeys kGemma3{.hidden = 2304,
                           .layers = 26,
                           .heads = 8,
                           .kv_heads = 4,
                           .head_dim = 256,
                           .intermediate = 9216,
                           .vocabulary = 262208,
                           .positions = 131072};

struct Gemma {
  bool branch_norms = false;
  std::string mlp_norm = "pre_feedforward_layernorm";
  bool head_norms = false;
  Activation activation = Activation::kGeluTanh;
  float attention_scale = 0.0f;
  float attention_softcap = 0.0f;
  float logit_softcap = 0.0f;
  RopeSpec local_rope;  // of layers with a window
};

void BuildGemmaAttention(DecoderBuilder& b, const Gemma& model, std::uint32_t layer) {
  const std::uint32_t window = b.spec().windows[layer];
  b.RmsNorm("input_layernorm");
  b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  if (model.head_norms) b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
  b.Rope(window > 0 ? model.local_rope : b.spec().rope);
  b.Attention(window, model.attention_scale, model.attention_softcap);
  b.AttentionOutput("self_attn.o_proj");
  if (model.branch_norms) b.BranchRmsNorm("post_attention_layernorm");
  b.AddToResidual();
}

void BuildGemma(DecoderBuilder& b, const Gemma& model) {
  b.Prefix({"model.", "model.language_model.", "language_model.model.", ""}, "norm.weight");
  for (const char* other : {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                            "model.multi_modal_projector."}) {
    b.IgnorePrefix(other);
  }
  b.SetNormOffset(1.0f);
  b.Embedding("embed_tokens.weight", "lm_head.weight",
              std::sqrt(static_cast<float>(b.spec().hidden)));
  b.Layers("layers", [&](std::uint32_t layer) {
    BuildGemmaAttention(b, model, layer);
    b.RmsNorm(model.mlp_norm);
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", model.activation);
    if (model.branch_norms) b.BranchRmsNorm("post_feedforward_layernorm");
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head(1.0f, model.logit_softcap);
}

absl::StatusOr<float> ReadSoftcap(const ConfigReader& config, const char* key, double absent) {
  if (config.IsNull(key)) return 0.0f;
  PENSTOCK_ASSIGN_OR_RETURN(const double cap, config.NumberOr(key, absent, 0.0, 1e6));
  return static_cast<float>(cap);
}

absl::Status ReadGemmaShared(const ConfigReader& config, const SizeKeys& sizes, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const bool both_ways,
                            config.BoolOr("use_bidirectional_attention", false));
  if (!both_ways) return absl::OkStatus();
  return config.Bad("use_bidirectional_attention", "false: this is a decoder");
}

// The keys that Gemma 2 and Gemma 3 share.
absl::Status ReadGemma2Keys(const ConfigReader& config, double logit_softcap, Gemma& model) {
  model.branch_norms = true;
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "hidden_activation", Activation::kGeluTanh));
  PENSTOCK_ASSIGN_OR_RETURN(const double scalar,
                            config.NumberOr("query_pre_attn_scalar", 256.0, 1e-3, 1e9));
  model.attention_scale = static_cast<float>(1.0 / std::sqrt(scalar));
  PENSTOCK_ASSIGN_OR_RETURN(model.logit_softcap,
                            ReadSoftcap(config, "final_logit_softcapping", logit_softcap));
  return absl::OkStatus();
}

void SetGemmaBuild(const Gemma& model, ModelSpec& spec) {
  spec.build = [model](DecoderBuilder& b) { BuildGemma(b, model); };
}

}  // namespace

absl::Status ReadGemma(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(ReadGemmaShared(config, kGemma, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  Gemma model;
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(config, "hidden_act", Activation::kGeluTanh));
  // The first releases say `gelu` and mean the form by tanh.
  if (model.activation == Activation::kGelu) model.activation = Activation::kGeluTanh;
  model.mlp_norm = "post_attention_layernorm";
  model.attention_scale = 1.0f / std::sqrt(static_cast<float>(spec.head_dim));
  SetGemmaBuild(model, spec);
  return absl::OkStatus();
}

namespace {

absl::Status ReadGemma2Kind(const ConfigReader& config, bool branch_norms, ModelSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(ReadGemmaShared(config, kGemma2, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadAlternatingWindows(config, 2, spec));
  Gemma model;
  PENSTOCK_RETURN_IF_ERROR(ReadGemma2Keys(config, 30.0, model));
  model.branch_norms = branch_norms;
  PENSTOCK_ASSIGN_OR_RETURN(model.attention_softcap,
                            ReadSoftcap(config, "attn_logit_softcapping", 50.0));
  model.local_rope = spec.rope;
  SetGemmaBuild(model, spec);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGemma2(const ConfigReader& config, ModelSpec& spec) {
  return ReadGemma2Kind(config, true, spec);
}

absl::Status ReadVaultGemma(const ConfigReader& config, ModelSpec& spec) {
  return ReadGemma2Kind(config, false, spec);
}

absl::Status ReadGemma3Text(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(ReadGemmaShared(config, kGemma3, spec));
  const std::uint32_t positions = spec.max_position;  // RoPE scaling is counted in
  PENSTOCK_RETURN_IF_ERROR(ReadRope(
      config,
      {.theta = "rope_local_base_freq", .layer_type = "sliding_attention", .scaling = false},
      spec));
  Gemma model;
  model.local_rope = std::exchange(spec.rope, {});
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.default_theta = 1e6, .layer_type = "full_attention"}, spec));
  spec.max_position = positions;
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t pattern,
                            config.IntegerOr("sliding_window_pattern", 6, 1, 4096));
  PENSTOCK_RETURN_IF_ERROR(ReadAlternatingWindows(config, pattern, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadGemma2Keys(config, 0.0, model));
  model.head_norms = true;
  SetGemmaBuild(model, spec);
  return absl::OkStatus();
}

// The text part of a model with a vision tower.
absl::Status ReadGemma3(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto text, config.Object("text_config"));
  if (!text.has_value()) return config.Bad("text_config", "an object");
  return ReadGemma3Text(*text, spec);
}

}  // namespace penstock::shard
