// OLMoE (arXiv:2409.02060): Llama with norms over all query and all key heads, queries, keys and
// values that may be bounded, and a mixture of experts in each layer.
#include <cstdint>
#include <optional>
#include <utility>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"
#include "shard/model/head_norms.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kOlmoeSizes{.hidden = 2048,
                               .layers = 16,
                               .heads = 16,
                               .intermediate = 2048,
                               .vocabulary = 50304,
                               .positions = 4096};

struct Olmoe {
  std::optional<float> clip;
  Routing routing;
};

void BuildOlmoe(DecoderBuilder& b, const Olmoe& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    AddWidthNorm(b, "self_attn.q_norm", "self_attn.k_norm");
    if (model.clip.has_value()) b.ClampQkv(*model.clip);
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.Router("mlp.gate", model.routing.experts);
    AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", model.routing);
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

}  // namespace

absl::Status ReadOlmoe(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kOlmoeSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  spec.expert_intermediate = std::exchange(spec.intermediate, 0);
  Olmoe model;
  PENSTOCK_ASSIGN_OR_RETURN(model.clip, ReadClip(config));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 64, 8));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing.renormalized, config.BoolOr("norm_topk_prob", false));
  spec.experts = model.routing.experts;
  spec.build = [model](DecoderBuilder& b) { BuildOlmoe(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
