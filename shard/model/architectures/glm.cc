// GLM-4 9B (arXiv:2406.12793): Llama with biases of queries, keys and values, heads that are
// rotated in part as pairs of neighbours, and gate and up in one matrix. `glm4` has norms after the
// branches, too.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kGlmSizes{.hidden = 4096,
                             .layers = 40,
                             .heads = 32,
                             .kv_heads = 2,
                             .head_dim = 128,
                             .intermediate = 13696,
                             .vocabulary = 151552,
                             .positions = 131072};

void BuildGlm(DecoderBuilder& b, bool branch_norms) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.SetInterleaved();
  b.Layers("layers", [&](std::uint32_t) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    if (branch_norms) b.BranchRmsNorm("post_self_attn_layernorm");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.FusedGatedMlp("mlp.gate_up_proj", "mlp.down_proj", b.spec().activation);
    if (branch_norms) b.BranchRmsNorm("post_mlp_layernorm");
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

absl::Status ReadGlmShared(const ConfigReader& config, bool branch_norms, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kGlmSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1.5625e-7, spec));
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.part = "partial_rotary_factor", .default_part = 0.5}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  spec.build = [branch_norms](DecoderBuilder& b) { BuildGlm(b, branch_norms); };
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadGlm(const ConfigReader& config, ModelSpec& spec) {
  return ReadGlmShared(config, false, spec);
}

absl::Status ReadGlm4(const ConfigReader& config, ModelSpec& spec) {
  return ReadGlmShared(config, true, spec);
}

}  // namespace penstock::shard
