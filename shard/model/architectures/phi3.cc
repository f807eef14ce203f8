// Phi-3 and Phi-4-mini (arXiv:2404.14219): Llama with queries, keys and values in one matrix, and
// gate and up in another. Heads may be rotated in part. Long models have longrope.
#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kPhi3Sizes{.hidden = 3072,
                              .layers = 32,
                              .heads = 32,
                              .intermediate = 8192,
                              .vocabulary = 32064,
                              .positions = 4096};

void BuildPhi3(DecoderBuilder& b) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&b](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.FusedQkv("self_attn.qkv_proj");
    b.Rope();
    b.Attention(b.spec().windows[layer]);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.FusedGatedMlp("mlp.gate_up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadPhi3(const ConfigReader& config, ModelSpec& spec) {
  spec.build = BuildPhi3;
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kPhi3Sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.part = "partial_rotary_factor"}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 0));
  return ReadWindows(config, window, 0, spec);
}

}  // namespace penstock::shard
