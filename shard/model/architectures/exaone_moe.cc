// K-EXAONE (LG AI Research): EXAONE 4.0 with norms before the branches, a mixture of experts chosen
// by sigmoids in groups, and a shared expert.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kExaoneMoeSizes{.hidden = 4096,
                                   .layers = 32,
                                   .heads = 32,
                                   .kv_heads = 32,
                                   .intermediate = 16384,
                                   .vocabulary = 102400,
                                   .positions = 2048};

struct ExaoneMoe {
  bool rope_by_window = false;  // only layers with a window have RoPE
  std::vector<bool> sparse;     // by layer
  Routing routing;
};

void BuildExaoneMoeMlp(DecoderBuilder& b, const ExaoneMoe& model, std::uint32_t layer) {
  b.RmsNorm("post_attention_layernorm");
  if (model.sparse[layer]) {
    b.Router("mlp.gate", model.routing.experts);
    // transformers 5 has another name in its own files.
    const std::string bias = "mlp.gate.e_score_correction_bias";
    const bool moved = b.Has("layers." + std::to_string(layer) + "." + bias);
    AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", model.routing,
               moved ? bias : "mlp.e_score_correction_bias");
    AddSharedExpert(b, "mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj",
                    "mlp.shared_experts.down_proj");
  } else {
    b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  }
  b.AddToResidual();
}

void BuildExaoneMoe(DecoderBuilder& b, const ExaoneMoe& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.IgnorePrefix("mtp.");
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    const std::uint32_t window = b.spec().windows[layer];
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
    model.rope_by_window&& window == 0 ? b.NoRope() : b.Rope();
    b.Attention(window);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    BuildExaoneMoeMlp(b, model, layer);
  });
  b.RmsNorm("norm");
  b.Head();
}

absl::Status ReadExaoneMoeExperts(const ConfigReader& config, ModelSpec& spec, ExaoneMoe& model) {
  PENSTOCK_ASSIGN_OR_RETURN(model.sparse, ReadMlpLayerTypes(config, spec.layers, 1));
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "sigmoid", {"noaux_tc"}));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadSigmoidRouting(config, 64, 8));
  PENSTOCK_ASSIGN_OR_RETURN(const double scale,
                            config.NumberOr("routed_scaling_factor", 2.5, 1e-6, 1e6));
  model.routing.scale = static_cast<float>(scale);
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 1024, 1, 1u << 20));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t shared,
                            config.IntegerOr("num_shared_experts", 1, 1, 64));
  spec.shared_intermediate = shared * spec.expert_intermediate;
  const auto dense = std::find(model.sparse.begin(), model.sparse.end(), false);
  if (dense == model.sparse.end()) spec.intermediate = 0;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadExaoneMoe(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kExaoneMoeSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {}, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 4096));
  std::uint32_t pattern = 4;
  if (!config.Has("layer_types") && window > 0) {  // some files have letters for the pattern
    PENSTOCK_ASSIGN_OR_RETURN(pattern, config.IntegerOr("sliding_window_pattern", 4, 1, 4096));
  }
  PENSTOCK_RETURN_IF_ERROR(ReadAlternatingWindows(config, pattern, spec));
  ExaoneMoe model;
  model.rope_by_window = window > 0;
  PENSTOCK_RETURN_IF_ERROR(ReadExaoneMoeExperts(config, spec, model));
  spec.build = [model](DecoderBuilder& b) { BuildExaoneMoe(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
