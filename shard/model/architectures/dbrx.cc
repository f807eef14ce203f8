// DBRX (Databricks): LayerNorm without biases, queries, keys and values that are bounded, and a
// mixture of experts in each layer. The experts of a layer are three matrices, one expert after the
// other.
#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

// The defaults of the transformers class. No layer has an MLP.
constexpr SizeKeys kDbrxSizes{.hidden = 2048,
                              .layers = 24,
                              .heads = 16,
                              .intermediate = 1,
                              .vocabulary = 32000,
                              .positions = 2048,
                              .hidden_key = "d_model",
                              .layers_key = "n_layers",
                              .heads_key = "n_heads",
                              .positions_key = "max_seq_len"};

struct Dbrx {
  std::optional<float> clip;
  Activation activation = Activation::kSilu;
  Routing routing;
};

void BuildDbrx(DecoderBuilder& b, const Dbrx& model) {
  b.Prefix({"transformer.", ""}, "norm_f.weight");
  b.Embedding("wte.weight", "lm_head.weight");
  b.Layers("blocks", [&](std::uint32_t) {
    b.LayerNorm("norm_attn_norm.norm_1");
    b.FusedQkv("norm_attn_norm.attn.Wqkv");
    if (model.clip.has_value()) b.ClampQkv(*model.clip);
    b.Rope();
    b.Attention(0);
    b.AttentionOutput("norm_attn_norm.attn.out_proj");
    b.AddToResidual();
    b.LayerNorm("norm_attn_norm.norm_2");
    b.Router("ffn.router.layer", model.routing.experts);
    AddRowStackedExperts(b, {"ffn.experts.mlp.w1", "ffn.experts.mlp.v1", "ffn.experts.mlp.w2"},
                         model.routing, model.activation);
    b.AddToResidual();
  });
  b.LayerNorm("norm_f");
  b.Head();
}

absl::Status ReadDbrxAttention(const ConfigReader& config, ModelSpec& spec, Dbrx& model) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto attention, config.Object("attn_config"));
  spec.kv_heads = 1;
  double theta = 10000.0;
  if (attention.has_value()) {
    constexpr char kKey[] = "kv_n_heads";
    PENSTOCK_ASSIGN_OR_RETURN(spec.kv_heads, attention->IntegerOr(kKey, 1, 1, spec.heads));
    if (spec.heads % spec.kv_heads != 0) {
      return attention->Bad(kKey, "a divisor of `n_heads` " + std::to_string(spec.heads));
    }
    PENSTOCK_ASSIGN_OR_RETURN(model.clip, ReadClip(*attention));
    PENSTOCK_ASSIGN_OR_RETURN(theta, attention->NumberOr("rope_theta", theta, 1.0, 1e15));
  }
  return ReadRope(config, {.default_theta = theta}, spec);
}

absl::Status ReadDbrxExperts(const ConfigReader& config, ModelSpec& spec, Dbrx& model) {
  const boost::json::object nothing;
  PENSTOCK_ASSIGN_OR_RETURN(const auto given, config.Object("ffn_config"));
  const ConfigReader experts = given.value_or(ConfigReader(nothing, ""));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t chosen,
                            experts.IntegerOr("moe_top_k", 1, 1, 1u << 16));
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(experts, 4, chosen));
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            experts.IntegerOr("ffn_hidden_size", 3584, 1, 1u << 24));
  constexpr char kNorm[] = "moe_normalize_expert_weights";
  if (!experts.IsNull(kNorm)) {
    PENSTOCK_ASSIGN_OR_RETURN(const double norm, experts.NumberOr(kNorm, 1.0, 0.0, 1e6));
    if (norm != 1.0) return experts.Bad(kNorm, "1 or null");
    model.routing.renormalized = true;
  }
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(const auto activation, experts.Object("ffn_act_fn"));
  if (!activation.has_value()) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(model.activation,
                            ReadActivation(*activation, "name", Activation::kSilu));
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadDbrx(const ConfigReader& config, ModelSpec& spec) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, kDbrxSizes, spec));
  spec.intermediate = 0;
  spec.norm_eps = 1e-5f;
  Dbrx model;
  PENSTOCK_RETURN_IF_ERROR(ReadDbrxAttention(config, spec, model));
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, 0, 0, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadDbrxExperts(config, spec, model));
  spec.build = [model](DecoderBuilder& b) { BuildDbrx(b, model); };
  return absl::OkStatus();
}

}  // namespace penstock::shard
