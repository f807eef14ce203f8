// EXAONE 4.0 (arXiv:2507.11407): Llama with norms of heads, and norms after the branches alone.
// Where some layers have a window, only these have RoPE.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kExaone4Sizes{.hidden = 4096,
                                 .layers = 32,
                                 .heads = 32,
                                 .kv_heads = 32,
                                 .intermediate = 16384,
                                 .vocabulary = 102400,
                                 .positions = 2048};

void BuildExaone4(DecoderBuilder& b, bool rope_by_window) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    const std::uint32_t window = b.spec().windows[layer];
    b.NoNorm();
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
    rope_by_window&& window == 0 ? b.NoRope() : b.Rope();
    b.Attention(window);
    b.AttentionOutput("self_attn.o_proj");
    b.BranchRmsNorm("post_attention_layernorm");
    b.AddToResidual();
    b.NoNorm();
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.BranchRmsNorm("post_feedforward_layernorm");
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadExaone4(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kExaone4Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 4096));
  std::uint32_t pattern = 4;
  if (!config.Has("layer_types") && window > 0) {  // some files have letters for the pattern
    PENSTOCK_ASSIGN_OR_RETURN(pattern, config.IntegerOr("sliding_window_pattern", 4, 1, 4096));
  }
  PENSTOCK_RETURN_IF_ERROR(ReadAlternatingWindows(config, pattern, spec));
  spec.build = [by_window = window > 0](DecoderBuilder& b) { BuildExaone4(b, by_window); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
