// ERNIE 4.5 with a mixture of experts (Baidu): pairs of neighbours are rotated, and experts are
// chosen by their softmax and a bias, beside a shared expert.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class.
constexpr SizeKeys kErnie45MoeSizes{.hidden = 2560,
                                    .layers = 28,
                                    .heads = 20,
                                    .kv_heads = 4,
                                    .intermediate = 12288,
                                    .vocabulary = 103424,
                                    .positions = 131072};

struct ErnieMoe {
  std::vector<bool> sparse;  // by layer
  Routing routing;
};

void BuildErnieMoe(DecoderBuilder& b, const ErnieMoe& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.IgnorePrefix("model.mtp_");  // they predict more tokens
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.SetInterleaved();
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    b.Qkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("self_attn.o_proj");
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    if (model.sparse[layer]) {
      b.Router("mlp.gate", model.routing.experts);
      AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj",
                 WithChoiceRow(b, model.routing, "mlp.moe_statics.e_score_correction_bias"));
      if (b.spec().shared_intermediate > 0) {
        AddSharedExpert(b, "mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj",
                        "mlp.shared_experts.down_proj");
      }
    } else {
      b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// Each `moe_layer_interval`th layer between two others has experts; an end of -1 is the last layer.
absl::Status ReadErnie45MoeSparse(const ConfigReader& config, std::uint32_t layers,
                                  ErnieMoe& model) {
  constexpr char kEnd[] = "moe_layer_end_index";
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t first,
                            config.IntegerOr("moe_layer_start_index", 1, 0, 4096));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t interval,
                            config.IntegerOr("moe_layer_interval", 1, 1, 4096));
  PENSTOCK_ASSIGN_OR_RETURN(const double end, config.NumberOr(kEnd, -1.0, -1.0, 4096.0));
  for (std::uint32_t i = 0; i < layers; ++i) {
    model.sparse.push_back((i + 1) % interval == 0 && i >= first && (end == -1.0 || i <= end));
  }
  return absl::OkStatus();
}

absl::Status ReadErnie45MoeExperts(const ConfigReader& config, ModelSpec& spec, ErnieMoe& model) {
  PENSTOCK_RETURN_IF_ERROR(ReadErnie45MoeSparse(config, spec.layers, model));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 64, 6));
  model.routing.renormalized = true;
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 1536, 1, 1u << 20));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t shared,
                            config.IntegerOr("moe_num_shared_experts", 2, 0, 64));
  spec.shared_intermediate = shared * spec.expert_intermediate;
  const auto dense = std::find(model.sparse.begin(), model.sparse.end(), false);
  if (dense == model.sparse.end()) spec.intermediate = 0;
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadErnie45Moe(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = true;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kErnie45MoeSizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-5, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadRope(config, {.default_theta = 500000.0}, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  ErnieMoe model;
  PENSTOCK_RETURN_IF_ERROR(ReadErnie45MoeExperts(config, spec, model));
  spec.build = [model](DecoderBuilder& b) { BuildErnieMoe(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
