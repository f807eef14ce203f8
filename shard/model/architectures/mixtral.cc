// Mixtral (arXiv:2401.04088): Mistral with a mixture of experts in each layer.
#include <string>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kMixtralSizes{.hidden = 4096,
                                 .layers = 32,
                                 .heads = 32,
                                 .kv_heads = 8,
                                 .intermediate = 14336,
                                 .vocabulary = 32000,
                                 .positions = 131072};

void BuildMixtral(DecoderBuilder& b, const Routing& routing) {
  b.Prefix({"model.", ""}, "norm.weight");
  // transformers 5 has another name where the experts are stacks.
  const std::string block = b.Has("layers.0.mlp.gate.weight") ? "mlp." : "block_sparse_moe.";
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(b.spec().windows[layer]);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.Router(block + "gate", routing.experts);
    AddExperts(b, block + "experts", "w1", "w3", "w2", routing);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadMixtral(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kMixtralSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.default_theta = 1e6}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 0));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, window, 0, spec));
  spec.expert_intermediate = spec.intermediate;
  spec.intermediate = 0;
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "softmax", {"greedy"}));
  PENSTOCK_ASSIGN_OR_RETURN(Routing routing, ReadRouting(config, 8, 2));
  routing.renormalized = true;
  spec.experts = routing.experts;
  spec.build = [routing](DecoderBuilder& b) { BuildMixtral(b, routing); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
