// Qwen2 (arXiv:2407.10671) has biases on queries, keys and values. Qwen3 (arXiv:2505.09388) has
// norms of each query and key head instead. Both can have a window in their upper layers.
#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers classes.
constexpr SizeKeys kQwen2{.hidden = 4096,
                          .layers = 32,
                          .heads = 32,
                          .kv_heads = 32,
                          .intermediate = 22016,
                          .vocabulary = 151936,
                          .positions = 32768};
constexpr SizeKeys kQwen3{.hidden = 4096,
                          .layers = 32,
                          .heads = 32,
                          .kv_heads = 32,
                          .head_dim = 128,
                          .intermediate = 22016,
                          .vocabulary = 151936,
                          .positions = 32768};

void BuildQwen(DecoderBuilder& b, bool head_norms) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&b, head_norms](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    if (head_norms) b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
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

// `sliding_window` counts only with `use_sliding_window`, and only from `max_window_layers` on.
absl::Status ReadQwenWindows(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool use, config.BoolOr("use_sliding_window", false));
  std::uint32_t window = 0;
  if (use) {
    PENSTOCK_ASSIGN_OR_RETURN(window, ReadSlidingWindow(config, 4096));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t first,
                            config.IntegerOr("max_window_layers", 28, 0, 4096));
  return ReadWindows(config, window, first, spec);
}

absl::Status ReadQwenDecoder(const ConfigReader& config, const SizeKeys& sizes, ModelSpec& spec) {
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  return ReadQwenWindows(config, spec);
}

}  // namespace

absl::Status ReadQwen2(const ConfigReader& config, ModelSpec& spec) {
  spec.build = [](DecoderBuilder& b) { BuildQwen(b, false); };
  return ReadQwenDecoder(config, kQwen2, spec);
}

absl::Status ReadQwen3(const ConfigReader& config, ModelSpec& spec) {
  spec.build = [](DecoderBuilder& b) { BuildQwen(b, true); };
  return ReadQwenDecoder(config, kQwen3, spec);
}

}  // namespace penstock::shard
