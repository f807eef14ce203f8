// DeepSeek V2 (arXiv:2405.04434) and V3 (arXiv:2412.19437): latent attention, and experts after the
// first layers, beside a shared expert. V3 chooses experts by sigmoids in groups, V2 by a softmax.
// The layers after the last one, which predict more tokens, are skipped.
#include <algorithm>
#include <string>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"
#include "shard/model/latent_attention.h"
#include "shard/model/latent_config.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers classes. `head_dim` has no meaning.
constexpr SizeKeys kV2{.hidden = 4096,
                       .layers = 32,
                       .heads = 32,
                       .head_dim = 2,
                       .intermediate = 11008,
                       .vocabulary = 102400,
                       .positions = 2048};
constexpr SizeKeys kV3{.hidden = 7168,
                       .layers = 61,
                       .heads = 128,
                       .head_dim = 2,
                       .intermediate = 18432,
                       .vocabulary = 129280,
                       .positions = 4096};

struct DeepSeek {
  LatentHeads heads;
  std::uint32_t dense_layers = 0;       // the first ones have an MLP
  std::uint32_t prediction_layers = 0;  // after the last one
  Routing routing;
  std::string choice_bias;  // of the router, or ""
};

void BuildDeepSeek(DecoderBuilder& b, const DeepSeek& model) {
  b.Prefix({"model.", ""}, "norm.weight");
  b.IgnoreLayersAfter("layers", model.prediction_layers);
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    AddLatentAttention(b, "self_attn", model.heads);
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    if (layer < model.dense_layers) {
      b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    } else {
      b.Router("mlp.gate", model.routing.experts);
      AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", model.routing,
                 model.choice_bias);
      AddSharedExpert(b, "mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj",
                      "mlp.shared_experts.down_proj");
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// The defaults of the transformers classes.
constexpr LatentHeads kDeepSeekHeads{
    .query_latent = 1536, .latent = 512, .nope = 128, .rope = 64, .value = 128};

// All but the attention's RoPE and the router.
absl::Status ReadDeepseekShared(const ConfigReader& config, const SizeKeys& sizes,
                                std::uint32_t dense_layers, std::uint32_t expert_width,
                                std::uint32_t shared_experts, ModelSpec& spec, DeepSeek& model) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_ASSIGN_OR_RETURN(model.heads, ReadLatentHeads(config, kDeepSeekHeads, spec));
  PENSTOCK_ASSIGN_OR_RETURN(
      spec.expert_intermediate,
      config.IntegerOr("moe_intermediate_size", expert_width, 1, kMaxLatentWidth));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t shared,
                            config.IntegerOr("n_shared_experts", shared_experts, 1, 64));
  spec.shared_intermediate = shared * spec.expert_intermediate;
  PENSTOCK_ASSIGN_OR_RETURN(model.dense_layers,
                            config.IntegerOr("first_k_dense_replace", dense_layers, 0, 4096));
  if (model.dense_layers == 0) spec.intermediate = 0;
  return absl::OkStatus();
}

// `n_group` and `topk_group`, with their defaults. The score of a group is the sum of the scores of
// its `best` best experts.
absl::Status ReadGroups(const ConfigReader& config, std::uint32_t groups, std::uint32_t kept,
                        std::uint32_t best, Routing& routing) {
  routing.group_best = best;
  PENSTOCK_ASSIGN_OR_RETURN(routing.groups,
                            config.IntegerOr("n_group", groups, 1, routing.experts));
  PENSTOCK_ASSIGN_OR_RETURN(
      routing.kept_groups,
      config.IntegerOr("topk_group", std::min(kept, routing.groups), 1, routing.groups));
  const std::uint32_t size = routing.experts / routing.groups;
  if (routing.experts % routing.groups != 0 || size < best) {
    return config.Bad("n_group", "a divisor of the " + std::to_string(routing.experts) +
                                     " experts, with groups of " + std::to_string(best) +
                                     " or more");
  }
  if (routing.kept_groups * size < routing.chosen) {
    return config.Bad("topk_group", "enough groups of " + std::to_string(size) + " for " +
                                        std::to_string(routing.chosen) + " experts");
  }
  return absl::OkStatus();
}

absl::Status ReadRoutingScale(const ConfigReader& config, double absent, Routing& routing) {
  PENSTOCK_ASSIGN_OR_RETURN(const double scale,
                            config.NumberOr("routed_scaling_factor", absent, 1e-6, 1e6));
  routing.scale = static_cast<float>(scale);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadDeepSeekV2(const ConfigReader& config, ModelSpec& spec) {
  DeepSeek model;
  PENSTOCK_RETURN_IF_ERROR(ReadDeepseekShared(config, kV2, 0, 1407, 2, spec, model));
  PENSTOCK_ASSIGN_OR_RETURN(model.prediction_layers, ReadPredictionLayers(config, 0));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 64, 6));
  PENSTOCK_RETURN_IF_ERROR(ReadRoutingScale(config, 1.0, model.routing));
  constexpr char kLimited[] = "group_limited_greedy";
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "softmax", {"greedy", kLimited}));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string method, config.StringOr("topk_method", "greedy"));
  if (method == kLimited) PENSTOCK_RETURN_IF_ERROR(ReadGroups(config, 1, 1, 1, model.routing));
  spec.experts = model.routing.experts;
  spec.build = [model](DecoderBuilder& b) { BuildDeepSeek(b, model); };
  return absl::OkStatus();
}

absl::Status ReadDeepSeekV3(const ConfigReader& config, ModelSpec& spec) {
  DeepSeek model;
  PENSTOCK_RETURN_IF_ERROR(ReadDeepseekShared(config, kV3, 3, 2048, 1, spec, model));
  PENSTOCK_ASSIGN_OR_RETURN(model.prediction_layers, ReadPredictionLayers(config, 1));
  PENSTOCK_ASSIGN_OR_RETURN(model.heads.interleaved, config.BoolOr("rope_interleave", true));
  PENSTOCK_RETURN_IF_ERROR(RequireRouter(config, "sigmoid", {"noaux_tc"}));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, 256, 8));
  model.routing.kind = Routing::Kind::kSigmoid;
  PENSTOCK_RETURN_IF_ERROR(ReadGroups(config, 8, 4, 2, model.routing));
  PENSTOCK_RETURN_IF_ERROR(ReadRoutingScale(config, 2.5, model.routing));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing.renormalized, config.BoolOr("norm_topk_prob", true));
  model.choice_bias = "mlp.gate.e_score_correction_bias";
  spec.experts = model.routing.experts;
  spec.build = [model](DecoderBuilder& b) { BuildDeepSeek(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
