// FlexOlmo (arXiv:2507.07024): OLMo 2 with a mixture of experts in each layer.
#include <cstdint>
#include <utility>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"
#include "shard/model/head_norms.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kFlexOlmoSizes{.hidden = 4096,
                                  .layers = 32,
                                  .heads = 32,
                                  .intermediate = 11008,
                                  .vocabulary = 100352,
                                  .positions = 4096};

void BuildFlexOlmo(DecoderBuilder& b, const Routing& routing) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.NoNorm();
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    AddWidthNorm(b, "self_attn.q_norm", "self_attn.k_norm");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.BranchRmsNorm("post_attention_layernorm");
    b.AddToResidual();
    b.NoNorm();
    b.Router("mlp.gate", routing.experts);
    AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", routing);
    b.BranchRmsNorm("post_feedforward_layernorm");
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadFlexOlmo(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kFlexOlmoSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.default_theta = 500000.0}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  spec.expert_intermediate = std::exchange(spec.intermediate, 0);
  PENSTOCK_ASSIGN_OR_RETURN(Routing routing, ReadRouting(config, 7, 5));
  PENSTOCK_ASSIGN_OR_RETURN(routing.renormalized, config.BoolOr("norm_topk_prob", false));
  spec.experts = routing.experts;
  spec.build = [routing](DecoderBuilder& b) { BuildFlexOlmo(b, routing); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
