// Hunyuan (Tencent): Llama with norms of heads after RoPE, whose base may be scaled.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kHunyuanSizes{.hidden = 4096,
                                 .layers = 32,
                                 .heads = 32,
                                 .intermediate = 11008,
                                 .vocabulary = 290943,
                                 .positions = 2048};

void BuildHunyuan(DecoderBuilder& b) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&b](std::uint32_t) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rotate(b.spec().rope);
    b.HeadNorm("self_attn.query_layernorm", "self_attn.key_layernorm");
    b.NoRope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadHunyuanDense(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kHunyuanSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  spec.build = BuildHunyuan;
  return absl::OkStatus();
}

}  // namespace penstock::shard
