// Qwen3-Next, Qwen3.5 and Qwen3.5-MoE: three of four layers are gated delta nets
// (arXiv:2412.06464), the others full attention with a gate. Norms have weights around 0, heads are
// rotated in part. Qwen3-Next groups the projections of a gated delta net by key head.
#include <algorithm>
#include <string>
#include <vector>

#include "common/status.h"
#include "shard/model/config_keys.h"
#include "shard/model/decoder_builder.h"
#include "shard/model/delta_net.h"
#include "shard/model/expert_layers.h"

namespace penstock::shard {
namespace {

struct QwenHybrid {
  bool grouped = false;         // projections by key head
  std::vector<bool> recurrent;  // by layer: a gated delta net, not attention
  std::vector<bool> sparse;     // by layer: experts, not an MLP
  Routing routing;
};

// The defaults of a transformers class.
struct Defaults {
  SizeKeys sizes;
  std::uint32_t experts = 0;  // 0: the class has none
  std::uint32_t chosen = 0;
};

constexpr Defaults kQwen35{.sizes = {.hidden = 4096,
                                     .layers = 32,
                                     .heads = 16,
                                     .kv_heads = 4,
                                     .head_dim = 256,
                                     .intermediate = 12288,
                                     .vocabulary = 248320,
                                     .positions = 32768}};
// A model of experts alone has no `intermediate_size`.
constexpr Defaults kQwen35Moe{.sizes = {.hidden = 2048,
                                        .layers = 40,
                                        .heads = 16,
                                        .kv_heads = 2,
                                        .head_dim = 256,
                                        .vocabulary = 248320,
                                        .positions = 32768,
                                        .intermediate_per_hidden = 1},
                              .experts = 256,
                              .chosen = 8};
constexpr Defaults kQwen3Next{.sizes = {.hidden = 2048,
                                        .layers = 48,
                                        .heads = 16,
                                        .kv_heads = 2,
                                        .head_dim = 256,
                                        .intermediate = 5632,
                                        .vocabulary = 151936,
                                        .positions = 32768},
                              .experts = 512,
                              .chosen = 10};

// Rows of queries, keys and values in one matrix, then z, b and a in a matrix each.
std::vector<RowSlice> SeparateProjections(const DecoderBuilder& b) {
  const DeltaSpec& all = b.spec().delta;
  const RankShare& part = b.part();
  const std::uint64_t dim = all.key_dim, value_dim = all.value_dim;
  const std::uint64_t qkv = 2 * all.KeyWidth() + all.ValueWidth();
  const Range keys{part.first_delta_key * dim, part.delta_keys * dim};
  const Range values{part.first_delta_value * value_dim, part.delta_values * value_dim};
  const Range heads{part.first_delta_value, part.delta_values};
  const std::string name = "linear_attn.in_proj_";
  return {{name + "qkv", qkv, keys},
          {name + "qkv", qkv, {all.KeyWidth() + keys.first, keys.count}},
          {name + "qkv", qkv, {2 * all.KeyWidth() + values.first, values.count}},
          {name + "z", all.ValueWidth(), values},
          {name + "b", all.value_heads, heads},
          {name + "a", all.value_heads, heads}};
}

// For each key head its query, its key, then the values and the z of its value heads; in a second
// matrix for each key head the b, then the a of its value heads.
std::vector<RowSlice> GroupedProjections(const DecoderBuilder& b) {
  const DeltaSpec& all = b.spec().delta;
  const RankShare& part = b.part();
  const std::uint64_t dim = all.key_dim, value_dim = all.value_dim;
  const std::uint64_t group = all.value_heads / all.key_heads;  // value heads of a key head
  const std::uint64_t rows = 2 * dim + 2 * group * value_dim;   // of a key head
  const std::uint64_t qkvz = rows * all.key_heads;
  std::vector<RowSlice> slices;
  for (const std::uint64_t key : {0, 1}) {
    for (std::uint64_t i = 0; i < part.delta_keys; ++i) {
      const std::uint64_t first = (part.first_delta_key + i) * rows + key * dim;
      slices.push_back({"linear_attn.in_proj_qkvz", qkvz, {first, dim}});
    }
  }
  for (const std::uint64_t z : {0, 1}) {
    for (std::uint64_t i = 0; i < part.delta_values; ++i) {
      const std::uint64_t head = part.first_delta_value + i;
      const std::uint64_t within = z * group + head % group;
      const std::uint64_t first = head / group * rows + 2 * dim + within * value_dim;
      slices.push_back({"linear_attn.in_proj_qkvz", qkvz, {first, value_dim}});
    }
  }
  for (const std::uint64_t a : {0, 1}) {
    for (std::uint64_t i = 0; i < part.delta_values; ++i) {
      const std::uint64_t head = part.first_delta_value + i;
      const std::uint64_t row = (2 * (head / group) + a) * group + head % group;
      slices.push_back({"linear_attn.in_proj_ba", 2 * all.value_heads, {row, 1}});
    }
  }
  return slices;
}

void BuildQwenHybridAttention(DecoderBuilder& b) {
  b.GatedQkv("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  b.HeadNorm("self_attn.q_norm", "self_attn.k_norm");
  b.Rope();
  b.Attention(0);
  b.AttentionGate();
  b.AttentionOutput("self_attn.o_proj");
}

void BuildExperts(DecoderBuilder& b, const Routing& routing) {
  b.Router("mlp.gate", routing.experts);
  AddExperts(b, "mlp.experts", "gate_proj", "up_proj", "down_proj", routing);
  AddSharedExpert(b, "mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj",
                  "mlp.shared_expert.down_proj", "mlp.shared_expert_gate");
}

void BuildQwenHybrid(DecoderBuilder& b, const QwenHybrid& model) {
  b.Prefix({"model.language_model.", "model.", ""}, "norm.weight");
  // The vision tower, and layers that predict more tokens.
  for (const char* other : {"model.visual.", "visual.", "mtp."}) b.IgnorePrefix(other);
  b.SetNormOffset(1.0f);
  b.Embedding("embed_tokens.weight", "lm_head.weight");
  b.Layers("layers", [&](std::uint32_t layer) {
    b.RmsNorm("input_layernorm");
    if (model.recurrent[layer]) {
      AddDeltaNet(b, "linear_attn", model.grouped ? GroupedProjections(b) : SeparateProjections(b));
    } else {
      BuildQwenHybridAttention(b);
    }
    b.AddToResidual();
    b.RmsNorm("post_attention_layernorm");
    if (model.sparse[layer]) {
      BuildExperts(b, model.routing);
    } else {
      b.GatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    }
    b.AddToResidual();
  });
  b.RmsNorm("norm");
  b.Head();
}

// From `layer_types`, or each `full_attention_interval`th layer is full.
absl::StatusOr<std::vector<bool>> ReadRecurrent(const ConfigReader& config, std::uint32_t layers) {
  const char* key = "layer_types";
  PENSTOCK_ASSIGN_OR_RETURN(const auto types, config.StringsOr(key));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t interval,
                            config.IntegerOr("full_attention_interval", 4, 1, 4096));
  std::vector<bool> recurrent;
  for (std::size_t i = 0; i < types.size(); ++i) {
    recurrent.push_back(types[i] == "linear_attention");
    if (!recurrent.back() && types[i] != "full_attention") {
      return config.BadItem(key, i, "full_attention or linear_attention");
    }
  }
  for (std::uint32_t i = 0; types.empty() && i < layers; ++i) {
    recurrent.push_back((i + 1) % interval != 0);
  }
  if (recurrent.size() != layers) {
    return config.Bad(key, "a list of " + std::to_string(layers) + " names");
  }
  if (std::find(recurrent.begin(), recurrent.end(), false) != recurrent.end()) return recurrent;
  return config.Bad(types.empty() ? "full_attention_interval" : key,
                    "such that one layer at least has full attention");
}

absl::Status ReadDelta(const ConfigReader& config, DeltaSpec& delta) {
  constexpr std::uint32_t kMostHeads = 1u << 14;
  constexpr std::uint32_t kMostDim = 4096;
  PENSTOCK_ASSIGN_OR_RETURN(delta.key_heads,
                            config.IntegerOr("linear_num_key_heads", 16, 1, kMostHeads));
  PENSTOCK_ASSIGN_OR_RETURN(delta.value_heads,
                            config.IntegerOr("linear_num_value_heads", 32, 1, kMostHeads));
  if (delta.value_heads % delta.key_heads != 0) {
    return config.Bad("linear_num_value_heads",
                      "a multiple of `linear_num_key_heads` " + std::to_string(delta.key_heads));
  }
  PENSTOCK_ASSIGN_OR_RETURN(delta.key_dim,
                            config.IntegerOr("linear_key_head_dim", 128, 1, kMostDim));
  PENSTOCK_ASSIGN_OR_RETURN(delta.value_dim,
                            config.IntegerOr("linear_value_head_dim", 128, 1, kMostDim));
  PENSTOCK_ASSIGN_OR_RETURN(delta.kernel,
                            config.IntegerOr("linear_conv_kernel_dim", 4, 2, kMostTaps));
  return absl::OkStatus();
}

absl::Status ReadQwenHybridExperts(const ConfigReader& config, const Defaults& defaults,
                                   bool renormalized, ModelSpec& spec, QwenHybrid& model) {
  constexpr std::uint32_t kMostColumns = 1u << 24;
  PENSTOCK_ASSIGN_OR_RETURN(model.routing, ReadRouting(config, defaults.experts, defaults.chosen));
  model.routing.renormalized = renormalized;
  spec.experts = model.routing.experts;
  PENSTOCK_ASSIGN_OR_RETURN(spec.expert_intermediate,
                            config.IntegerOr("moe_intermediate_size", 512, 1, kMostColumns));
  PENSTOCK_ASSIGN_OR_RETURN(
      spec.shared_intermediate,
      config.IntegerOr("shared_expert_intermediate_size", 512, 1, kMostColumns));
  return absl::OkStatus();
}

absl::Status ReadQwenHybridShared(const ConfigReader& config, const Defaults& defaults,
                                  ModelSpec& spec, QwenHybrid& model) {
  spec.tied_head = false;
  PENSTOCK_RETURN_IF_ERROR(RequireSilu(config));
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, defaults.sizes, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadNormEps(config, "rms_norm_eps", 1e-6, spec));
  PENSTOCK_RETURN_IF_ERROR(
      ReadRope(config, {.part = "partial_rotary_factor", .default_part = 0.25}, spec));
  spec.windows.assign(spec.layers, 0);
  PENSTOCK_ASSIGN_OR_RETURN(const bool gated, config.BoolOr("attn_output_gate", true));
  if (!gated) return config.Bad("attn_output_gate", "true");
  PENSTOCK_ASSIGN_OR_RETURN(model.recurrent, ReadRecurrent(config, spec.layers));
  return ReadDelta(config, spec.delta);
}

void SetQwenHybridBuild(const QwenHybrid& model, ModelSpec& spec) {
  if (std::find(model.sparse.begin(), model.sparse.end(), false) == model.sparse.end()) {
    spec.intermediate = 0;
  }
  spec.build = [model](DecoderBuilder& b) { BuildQwenHybrid(b, model); };
}

// Reads the text part of a model with a vision tower.
absl::Status ReadTextConfig(const ConfigReader& config, ReadArchitecture* read, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto text, config.Object("text_config"));
  if (!text.has_value()) return config.Bad("text_config", "an object");
  return read(*text, spec);
}

}  // namespace

absl::Status ReadQwen35Text(const ConfigReader& config, ModelSpec& spec) {
  QwenHybrid model;
  PENSTOCK_RETURN_IF_ERROR(ReadQwenHybridShared(config, kQwen35, spec, model));
  model.sparse.assign(spec.layers, false);
  SetQwenHybridBuild(model, spec);
  return absl::OkStatus();
}

absl::Status ReadQwen35MoeText(const ConfigReader& config, ModelSpec& spec) {
  QwenHybrid model;
  PENSTOCK_RETURN_IF_ERROR(ReadQwenHybridShared(config, kQwen35Moe, spec, model));
  PENSTOCK_RETURN_IF_ERROR(ReadQwenHybridExperts(config, kQwen35Moe, true, spec, model));
  model.sparse.assign(spec.layers, true);
  SetQwenHybridBuild(model, spec);
  return absl::OkStatus();
}

absl::Status ReadQwen35(const ConfigReader& config, ModelSpec& spec) {
  return ReadTextConfig(config, ReadQwen35Text, spec);
}

absl::Status ReadQwen35Moe(const ConfigReader& config, ModelSpec& spec) {
  return ReadTextConfig(config, ReadQwen35MoeText, spec);
}

absl::Status ReadQwen3Next(const ConfigReader& config, ModelSpec& spec) {
  QwenHybrid model;
  PENSTOCK_RETURN_IF_ERROR(ReadQwenHybridShared(config, kQwen3Next, spec, model));
  PENSTOCK_ASSIGN_OR_RETURN(const bool renormalized, config.BoolOr("norm_topk_prob", true));
  PENSTOCK_RETURN_IF_ERROR(ReadQwenHybridExperts(config, kQwen3Next, renormalized, spec, model));
  PENSTOCK_ASSIGN_OR_RETURN(model.sparse, ReadSparseLayers(config, spec.layers));
  model.grouped = true;
  SetQwenHybridBuild(model, spec);
  return absl::OkStatus();
}

}  // namespace penstock::shard
