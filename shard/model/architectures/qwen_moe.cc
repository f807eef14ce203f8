// Qwen2-MoE (arXiv:2407.10671) and Qwen3-MoE (arXiv:2505.09388): Qwen2 or Qwen3 with a mixture of
// experts in most layers. Qwen2-MoE has a shared expert with a gate.
#include <algorithm>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers classes.
constexpr SizeKeys kQwen2Moe{.hidden = 2048,
                             .layers = 24,
                             .heads = 16,
                             .kv_heads = 16,
                             .intermediate = 5632,
                             .vocabulary = 151936,
                             .positions = 32768};
constexpr SizeKeys kQwen3Moe{.hidden = 2048,
                             .layers = 24,
                             .heads = 32,
                             .kv_heads = 4,
                             .intermediate = 6144,
                             .vocabulary = 151936,
                             .positions = 32768};

struct QwenMoe {
  bool head_norms = false;
  Routing routing;
  std::vector<bool> sparse;  // by layer: experts, not an MLP
};

void BuildQwenMoe(DecoderBuilder& b, const QwenMoe& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    if (model.head_norms) b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
    b.Rope();
    b.Attention(b.spec().windows[layer]);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    if (!model.sparse[layer]) {
      b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    } else {
      b.Router("mlp.gate", model.routing.experts);
      AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", model.routing);
      if (b.spec().shared_intermediate > 0) {
        AddSharedExpert(b, "mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj",
                        "mlp.shared_expert.down_proj", "mlp.shared_expert_gate");
      }
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// `expert_width` is the default of the transformers class.
absl::Status ReadQwenMoeShared(const ConfigReader& config, const SizeKeys& sizes,
                               std::uint32_t expert_width, ModelSpec& spec, QwenMoe& model) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "softmax", {"greedy"}));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", expert_width, 1, 1u << 24));
  PENSTOCK_ASSIGN_OR_RETURN(model.sparse, ReadSparseLayers(config, spec.layers));
  const auto& sparse = model.sparse;
  if (std::find(sparse.begin(), sparse.end(), false) == sparse.end()) spec.intermediate = 0;
  PENSTOCK_ASSIGN_OR_RETURN(model.routing.renormalized, config.BoolOr("norm_topk_prob", false));
  return absl::OkStatus();
}

// With `use_sliding_window` Qwen3-MoE has one window in all layers. Qwen2-MoE has it in every
// second layer below `max_window_layers`.
absl::Status ReadWindow(const ConfigReader& config, bool alternating, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const bool use, config.BoolOr("use_sliding_window", false));
  std::uint32_t window = 0;
  if (use) {
    PENSTOCK_ASSIGN_OR_RETURN(window, ReadSlidingWindow(config, 4096));
  }
  if (!alternating || config.Has("layer_types")) return ReadWindows(config, window, 0, spec);
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t last,
                            config.IntegerOr("max_window_layers", 28, 0, 4096));
  for (std::uint32_t i = 0; i < spec.layers; ++i) {
    spec.windows.push_back((i + 1) % 2 == 1 && i < last ? window : 0);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadQwen2Moe(const ConfigReader& config, ModelSpec& spec) {
  QwenMoe model;
  PENSTOCK_RETURN_IF_ERROR(ReadQwenMoeShared(config, kQwen2Moe, 1408, spec, model));
  PENSTOCK_RETURN_IF_ERROR(ReadWindow(config, true, spec));
  PENSTOCK_ASSIGN_OR_RETURN(spec.shared_intermediate,
                            config.IntegerOr("shared_expert_intermediate_size", 5632, 1, 1u << 24));
  const bool renormalized = model.routing.renormalized;
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 60, 4));
  model.routing.renormalized = renormalized;
  spec.experts = model.routing.experts;
  spec.build = [model](DecoderBuilder& b) { BuildQwenMoe(b, model); };
  return absl::OkStatus();
}

absl::Status ReadQwen3Moe(const ConfigReader& config, ModelSpec& spec) {
  QwenMoe model;
  PENSTOCK_RETURN_IF_ERROR(ReadQwenMoeShared(config, kQwen3Moe, 768, spec, model));
  PENSTOCK_RETURN_IF_ERROR(ReadWindow(config, false, spec));
  const bool renormalized = model.routing.renormalized;
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 128, 8));
  model.routing.renormalized = renormalized;
  spec.experts = model.routing.experts;
  model.head_norms = true;
  spec.build = [model](DecoderBuilder& b) { BuildQwenMoe(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
