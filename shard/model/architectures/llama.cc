// Llama (arXiv:2302.13971), and Mistral (arXiv:2310.06825): Llama with a window in each layer.
// InternLM 3 (Shanghai AI Laboratory) is Llama with other defaults.
#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers classes.
constexpr SizeKeys kLlama{.hidden = 4096,
                          .layers = 32,
                          .heads = 32,
                          .intermediate = 11008,
                          .vocabulary = 32000,
                          .positions = 2048};
constexpr SizeKeys kMistral{.hidden = 4096,
                            .layers = 32,
                            .heads = 32,
                            .kv_heads = 8,
                            .intermediate = 14336,
                            .vocabulary = 32000,
                            .positions = 131072};
constexpr SizeKeys kInternLm3{.hidden = 4096,
                              .layers = 48,
                              .heads = 32,
                              .kv_heads = 2,
                              .head_dim = 128,
                              .intermediate = 10240,
                              .vocabulary = 128512,
                              .positions = 32768};

void BuildLlama(DecoderBuilder& b) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&b](std::uint32_t layer) {
    // x = x + attention(norm(x))
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(b.spec().windows[layer]);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    // x = x + down(silu(gate(norm(x))) * up(norm(x)))
    b.RmsNorm("post_attention_layernorm");
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

absl::Status ReadLlamaDecoder(const ConfigReader& config, const SizeKeys& sizes,
                              std::uint32_t default_window, ModelSpec& spec) {
  spec.build = BuildLlama;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, default_window));
  return ReadWindows(config, window, 0, spec);
}

}  // namespace

absl::Status ReadLlama(const ConfigReader& config, ModelSpec& spec) {
  return ReadLlamaDecoder(config, kLlama, 0, spec);
}

absl::Status ReadMistral(const ConfigReader& config, ModelSpec& spec) {
  return ReadLlamaDecoder(config, kMistral, 4096, spec);
}

absl::Status ReadInternLm3(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadLlamaDecoder(config, kInternLm3, 0, spec));
  return ReadNormEps(config, "rms_norm_eps", 1e-5, spec);
}

}  // namespace penstock::shard
