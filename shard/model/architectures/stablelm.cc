// StableLM (arXiv:2402.17834): Llama with LayerNorm and heads that are rotated in part. StableLM 2
// 12B has norms of heads, each with its own weights, and attention beside the MLP.
#include <cstdint>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/head_norms.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kStablelmSizes{.hidden = 2560,
                                  .layers = 32,
                                  .heads = 32,
                                  .kv_heads = 32,
                                  .intermediate = 6912,
                                  .vocabulary = 50304,
                                  .positions = 4096};

struct StableLm {
  bool head_norms = false;
  bool parallel = false;
};

void BuildStableLm(DecoderBuilder& b, const StableLm& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.LayerNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    if (model.head_norms) {
      AddHeadLayerNorm(b, "self_attn.q_layernorm", "self_attn.k_layernorm", HeadWeights::kSeparate);
    }
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    if (!model.parallel) {
      b.AddToResidual();
      b.LayerNorm("post_attention_layernorm");
    }
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", b.spec().activation);
    b.AddToResidual();
  });
  b.LayerNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadStableLm(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadGate(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kStablelmSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "layer_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.part = "partial_rotary_factor", .default_part = 0.25}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  StableLm model;
  PENSTOCK_ASSIGN_OR_RETURN(model.head_norms, config.BoolOr("qk_layernorm", false));
  PENSTOCK_ASSIGN_OR_RETURN(model.parallel, config.BoolOr("use_parallel_residual", false));
  spec.build = [model](DecoderBuilder& b) { BuildStableLm(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
