// Command R (Cohere): LayerNorm without biases, attention beside the MLP, and scaled logits.
// Command R7B (`cohere2`): windows on three layers of four; only these have RoPE.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/head_norms.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers classes.
constexpr SizeKeys kCohereSizes{.hidden = 8192,
                                .layers = 40,
                                .heads = 64,
                                .intermediate = 22528,
                                .vocabulary = 256000,
                                .positions = 8192};

struct Cohere {
  bool head_norms = false;
  bool rope_by_window = false;  // layers without a window have no RoPE
  float logits = 1.0f;
};

void BuildCohere(DecoderBuilder& b, const Cohere& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.SetInterleaved();
  b.Layers("layers", [&](std::uint32_t layer) {
    const std::uint32_t window = b.spec().windows[layer];
    b.LayerNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    if (model.head_norms) {
      AddHeadLayerNorm(b, "self_attn.q_norm", "self_attn.k_norm", HeadWeights::kStacked);
    }
    model.rope_by_window&& window == 0 ? b.NoRope() : b.Rope();
    b.Attention(window);
    b.AttentionOutput("self_attn.o_proj");
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.LayerNorm("norm");
  b.Head(model.logits);
}

absl::Status ReadCohereShared(const ConfigReader& config, double theta, ModelSpec& spec,
                              Cohere& model) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kCohereSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.default_theta = theta}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const double logits, config.NumberOr("logit_scale", 0.0625, 1e-6, 1e6));
  model.logits = static_cast<float>(logits);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadCohere(const ConfigReader& config, ModelSpec& spec) {
  Cohere model;
  PENSTOCK_RETURN_IF_ERROR(ReadCohereShared(config, 500000.0, spec, model));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  PENSTOCK_ASSIGN_OR_RETURN(model.head_norms, config.BoolOr("use_qk_norm", false));
  spec.build = [model](DecoderBuilder& b) { BuildCohere(b, model); };
  return absl::OkStatus();
}

absl::Status ReadCohere2(const ConfigReader& config, ModelSpec& spec) {
  Cohere model;
  PENSTOCK_RETURN_IF_ERROR(ReadCohereShared(config, 10000.0, spec, model));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t pattern,
                            config.IntegerOr("sliding_window_pattern", 4, 1, 4096));
  PENSTOCK_RETURN_IF_ERROR(ReadAlternatingWindows(config, pattern, spec));
  model.rope_by_window = true;
  spec.build = [model](DecoderBuilder& b) { BuildCohere(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
