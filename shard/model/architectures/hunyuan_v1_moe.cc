// Hunyuan with a mixture of experts (Tencent): Hunyuan, and a shared expert beside the others.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kHunyuanV1MoeSizes{.hidden = 4096,
                                      .layers = 32,
                                      .heads = 32,
                                      .intermediate = 11008,
                                      .vocabulary = 290943,
                                      .positions = 2048};

void BuildHunyuanMoe(DecoderBuilder& b, const Routing& routing) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rotate(b.spec().rope);
    b.HeadNorm("self_attn.query_layernorm", "self_attn.key_layernorm");
    b.NoRope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    b.Router("mlp.gate.wg", routing.experts);
    AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", routing);
    AddSharedExpert(b, "mlp.shared_mlp.gate_proj", "mlp.shared_mlp.up_proj",
                    "mlp.shared_mlp.down_proj");
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// `moe_topk` is a number, or a list with the same number for each layer.
absl::Status ReadChosen(const ConfigReader& config, Routing& routing) {
  constexpr char kKey[] = "moe_topk";
  const auto list = config.Numbers(kKey, 1.0, routing.experts);
  if (!list.ok() || list->empty()) {
    PENSTOCK_ASSIGN_OR_RETURN(routing.chosen,
                              config.IntegerOr(kKey, routing.chosen, 1, routing.experts));
    return absl::OkStatus();
  }
  if (std::count(list->begin(), list->end(), list->front()) !=
      static_cast<std::ptrdiff_t>(list->size())) {
    return config.Bad(kKey, "the same number for each layer");
  }
  routing.chosen = static_cast<std::uint32_t>(list->front());
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadHunyuanMoe(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kHunyuanV1MoeSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  spec.expert_intermediate = std::exchange(spec.intermediate, 0);
  spec.shared_intermediate = spec.expert_intermediate;
  PENSTOCK_ASSIGN_OR_RETURN(Routing routing, ReadRouting(config, 1, 1));
  PENSTOCK_RETURN_IF_ERROR(ReadChosen(config, routing));
  routing.renormalized = true;
  spec.experts = routing.experts;
  spec.build = [routing](DecoderBuilder& b) { BuildHunyuanMoe(b, routing); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
