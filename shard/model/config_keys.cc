#include "shard/model/config_keys.h"

#include <string>
#include <vector>

#include "common/status.h"

namespace penstock::shard {
namespace {

constexpr std::uint32_t kMaxHidden = 1u << 20;
constexpr std::uint32_t kMaxLayers = 4096;
constexpr std::uint32_t kMaxHeads = 1u << 14;
constexpr std::uint32_t kMaxHeadDim = 4096;
constexpr std::uint32_t kMaxIntermediate = 1u << 24;
constexpr std::uint32_t kMaxVocabulary = 1u << 24;
constexpr std::uint32_t kMaxPosition = 2147483647u;

// `absent`: the default of the class, or 0. A null is not absent: transformers takes it as it is.
absl::StatusOr<std::uint32_t> ReadSize(const ConfigReader& config, std::string_view key,
                                       std::uint32_t absent, std::uint32_t most) {
  if (absent > 0 && !config.Has(key) && !config.IsNull(key)) return absent;
  return config.Integer(key, 1, most);
}

absl::Status ReadHeads(const ConfigReader& config, const SizeKeys& keys, ModelSpec& spec) {
  constexpr char kKvHeads[] = "num_key_value_heads";
  PENSTOCK_ASSIGN_OR_RETURN(spec.heads, ReadSize(config, keys.heads_key, keys.heads, kMaxHeads));
  const bool as_heads = keys.kv_heads == 0 || config.IsNull(kKvHeads);
  PENSTOCK_ASSIGN_OR_RETURN(
      spec.kv_heads,
      config.IntegerOr(kKvHeads, as_heads ? spec.heads : keys.kv_heads, 1, spec.heads));
  if (spec.kv_heads > spec.heads || spec.heads % spec.kv_heads != 0) {
    return config.Bad(kKvHeads, "a divisor of `" + std::string(keys.heads_key) + "` " +
                                    std::to_string(spec.heads));
  }
  if (!config.Has("head_dim") && keys.head_dim == 0 && spec.hidden % spec.heads != 0) {
    return config.Bad(keys.heads_key, "a divisor of `" + std::string(keys.hidden_key) + "` " +
                                          std::to_string(spec.hidden));
  }
  const std::uint32_t head_dim = keys.head_dim != 0 ? keys.head_dim : spec.hidden / spec.heads;
  PENSTOCK_ASSIGN_OR_RETURN(spec.head_dim, config.IntegerOr("head_dim", head_dim, 2, kMaxHeadDim));
  if (spec.head_dim >= 2 && spec.head_dim % 2 == 0) return absl::OkStatus();
  return config.Bad("head_dim", "even (hidden_size / num_attention_heads gives " +
                                    std::to_string(head_dim) + ")");
}

}  // namespace

absl::Status ReadSizes(const ConfigReader& config, const SizeKeys& keys, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(spec.hidden,
                            ReadSize(config, keys.hidden_key, keys.hidden, kMaxHidden));
  PENSTOCK_ASSIGN_OR_RETURN(spec.layers,
                            ReadSize(config, keys.layers_key, keys.layers, kMaxLayers));
  PENSTOCK_RETURN_IF_ERROR(ReadHeads(config, keys, spec));
  if (keys.intermediate_per_hidden > 0 && !config.Has(keys.intermediate_key)) {
    spec.intermediate = keys.intermediate_per_hidden * spec.hidden;
  } else {
    PENSTOCK_ASSIGN_OR_RETURN(spec.intermediate, ReadSize(config, keys.intermediate_key,
                                                          keys.intermediate, kMaxIntermediate));
  }
  PENSTOCK_ASSIGN_OR_RETURN(spec.vocabulary,
                            ReadSize(config, "vocab_size", keys.vocabulary, kMaxVocabulary));
  PENSTOCK_ASSIGN_OR_RETURN(spec.max_position,
                            ReadSize(config, keys.positions_key, keys.positions, kMaxPosition));
  return absl::OkStatus();
}

absl::Status ReadNormEps(const ConfigReader& config, std::string_view key, double absent,
                         ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const double eps, config.NumberOr(key, absent, 0.0, 1.0));
  spec.norm_eps = static_cast<float>(eps);
  return absl::OkStatus();
}

absl::Status ReadGate(const ConfigReader& config, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(spec.activation,
                            ReadActivation(config, "hidden_act", Activation::kSilu));
  return absl::OkStatus();
}

absl::Status RequireSilu(const ConfigReader& config) {
  const char* key = "hidden_act";
  PENSTOCK_ASSIGN_OR_RETURN(const Activation activation,
                            ReadActivation(config, key, Activation::kSilu));
  return activation == Activation::kSilu ? absl::OkStatus() : config.Bad(key, "silu");
}

absl::StatusOr<float> ReadMultiplier(const ConfigReader& config, std::string_view key) {
  PENSTOCK_ASSIGN_OR_RETURN(const double value, config.NumberOr(key, 1.0, 1e-6, 1e6));
  return static_cast<float>(value);
}

absl::StatusOr<std::optional<float>> ReadClip(const ConfigReader& config) {
  constexpr char kKey[] = "clip_qkv";
  if (!config.Has(kKey)) return std::nullopt;
  PENSTOCK_ASSIGN_OR_RETURN(const double limit, config.Number(kKey, 1e-6, 1e6));
  return static_cast<float>(limit);
}

absl::Status ReadRotaryDim(const ConfigReader& config, std::uint32_t absent, ModelSpec& spec) {
  constexpr char kKey[] = "rotary_dim";
  PENSTOCK_ASSIGN_OR_RETURN(spec.rope.dim, config.IntegerOr(kKey, absent, 2, spec.head_dim));
  if (spec.rope.dim <= spec.head_dim && spec.rope.dim % 2 == 0) return absl::OkStatus();
  return config.Bad(
      kKey, "even and at most the " + std::to_string(spec.head_dim) + " dimensions of a head");
}

absl::Status ReadKvHeads(const ConfigReader& config, const char* key, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(spec.kv_heads, config.IntegerOr(key, spec.heads, 1, spec.heads));
  if (spec.heads % spec.kv_heads == 0) return absl::OkStatus();
  return config.Bad(key, "a divisor of the " + std::to_string(spec.heads) + " attention heads");
}

absl::StatusOr<Activation> ReadActivation(const ConfigReader& config, std::string_view key,
                                          Activation absent) {
  if (!config.Has(key)) return absent;
  struct Row {
    std::string_view name;
    Activation activation;
  };
  constexpr Row kRows[] = {
      {"silu", Activation::kSilu},          {"swish", Activation::kSilu},
      {"gelu", Activation::kGelu},          {"gelu_new", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"relu", Activation::kRelu},          {"relu2", Activation::kReluSquared},
  };
  PENSTOCK_ASSIGN_OR_RETURN(const std::string name, config.StringOr(key, ""));
  std::string names;
  for (const Row& row : kRows) {
    if (row.name == name) return row.activation;
    names.append(names.empty() ? "" : ", ").append(row.name);
  }
  return config.Bad(key, "one of " + names);
}

absl::Status RequireRouter(const ConfigReader& config, std::string_view scores,
                           std::initializer_list<std::string_view> methods) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string given,
                            config.StringOr("scoring_func", std::string(scores)));
  if (given != scores) return config.Bad("scoring_func", std::string(scores) + " or absent");
  const char* key = "topk_method";
  PENSTOCK_ASSIGN_OR_RETURN(const std::string method, config.StringOr(key, ""));
  std::string names;
  for (const std::string_view known : methods) {
    if (!config.Has(key) || known == method) return absl::OkStatus();
    names.append(known).append(" or ");
  }
  return config.Bad(key, names + "absent");
}

absl::StatusOr<Routing> ReadRouting(const ConfigReader& config, std::uint32_t experts,
                                    std::uint32_t chosen) {
  constexpr std::uint32_t kMaxExperts = 1u << 16;
  Routing routing;
  routing.experts = experts;
  for (const char* key :
       {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}) {
    PENSTOCK_ASSIGN_OR_RETURN(routing.experts,
                              config.IntegerOr(key, routing.experts, 1, kMaxExperts));
  }
  routing.chosen = chosen;
  for (const char* key : {"num_experts_per_tok", "moe_k"}) {
    PENSTOCK_ASSIGN_OR_RETURN(routing.chosen,
                              config.IntegerOr(key, routing.chosen, 1, routing.experts));
  }
  if (routing.chosen > routing.experts) {  // the default
    return config.Bad("num_experts_per_tok",
                      "at most the number of experts, " + std::to_string(routing.experts));
  }
  return routing;
}

absl::StatusOr<Routing> ReadSigmoidRouting(const ConfigReader& config, std::uint32_t experts,
                                           std::uint32_t chosen) {
  PENSTOCK_ASSIGN_OR_RETURN(Routing routing, ReadRouting(config, experts, chosen));
  routing.kind = Routing::Kind::kSigmoid;
  routing.group_best = 2;
  PENSTOCK_ASSIGN_OR_RETURN(routing.groups, config.IntegerOr("n_group", 1, 1, routing.experts));
  PENSTOCK_ASSIGN_OR_RETURN(routing.kept_groups,
                            config.IntegerOr("topk_group", 1, 1, routing.groups));
  const std::uint32_t size = routing.experts / routing.groups;
  if (routing.experts % routing.groups != 0 || (routing.groups > 1 && size < 2)) {
    return config.Bad("n_group", "a divisor of the " + std::to_string(routing.experts) +
                                     " experts, with groups of two or more");
  }
  if (routing.kept_groups * size < routing.chosen) {
    return config.Bad("topk_group", "enough groups of " + std::to_string(size) + " for " +
                                        std::to_string(routing.chosen) + " experts");
  }
  PENSTOCK_ASSIGN_OR_RETURN(routing.renormalized, config.BoolOr("norm_topk_prob", true));
  PENSTOCK_ASSIGN_OR_RETURN(const double scale,
                            config.NumberOr("routed_scaling_factor", 1.0, 1e-6, 1e6));
  routing.scale = static_cast<float>(scale);
  return routing;
}

absl::StatusOr<std::uint32_t> ReadPredictionLayers(const ConfigReader& config,
                                                   std::uint32_t absent) {
  constexpr std::uint32_t kMost = 64;
  return config.IntegerOr("num_nextn_predict_layers", absent, 0, kMost);
}

absl::StatusOr<std::vector<bool>> ReadSparseLayers(const ConfigReader& config,
                                                   std::uint32_t layers) {
  constexpr char kDense[] = "mlp_only_layers";
  std::vector<double> dense;
  if (config.Has(kDense)) {
    PENSTOCK_ASSIGN_OR_RETURN(dense, config.Numbers(kDense, 0.0, 4096.0));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t step,
                            config.IntegerOr("decoder_sparse_step", 1, 1, 4096));
  std::vector<bool> sparse;
  for (std::uint32_t i = 0; i < layers; ++i) sparse.push_back((i + 1) % step == 0);
  for (const double layer : dense) {
    if (layer < layers) sparse[static_cast<std::size_t>(layer)] = false;
  }
  return sparse;
}

absl::StatusOr<std::vector<bool>> ReadMlpLayerTypes(const ConfigReader& config,
                                                    std::uint32_t layers, std::uint32_t dense) {
  constexpr char kTypes[] = "mlp_layer_types";
  PENSTOCK_ASSIGN_OR_RETURN(const auto types, config.StringsOr(kTypes));
  PENSTOCK_ASSIGN_OR_RETURN(dense, config.IntegerOr("first_k_dense_replace", dense, 0, 4096));
  std::vector<bool> sparse;
  if (types.empty()) {
    for (std::uint32_t i = 0; i < layers; ++i) sparse.push_back(i >= dense);
    return sparse;
  }
  if (types.size() != layers) {
    return config.Bad(kTypes, "a list of " + std::to_string(layers) + " names");
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    sparse.push_back(types[i] == "sparse");
    if (types[i] != "sparse" && types[i] != "dense") {
      return config.BadItem(kTypes, i, "dense or sparse");
    }
  }
  return sparse;
}

absl::Status ReadWindows(const ConfigReader& config, std::uint32_t window,
                         std::uint32_t first_layer, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto types, config.StringsOr("layer_types"));
  if (types.empty()) {
    for (std::uint32_t i = 0; i < spec.layers; ++i) {
      spec.windows.push_back(i >= first_layer ? window : 0);
    }
    return absl::OkStatus();
  }
  if (types.size() != spec.layers) {
    return config.Bad("layer_types", "a list of " + std::to_string(spec.layers) + " names");
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const bool sliding = types[i] == "sliding_attention";
    if (!sliding && types[i] != "full_attention") {
      return config.BadItem("layer_types", i, "full_attention or sliding_attention");
    }
    spec.windows.push_back(sliding ? window : 0);
  }
  return absl::OkStatus();
}

absl::Status ReadAlternatingWindows(const ConfigReader& config, std::uint32_t pattern,
                                    ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadSlidingWindow(config, 4096));
  if (config.Has("layer_types")) return ReadWindows(config, window, 0, spec);
  for (std::uint32_t i = 0; i < spec.layers; ++i) {
    spec.windows.push_back((i + 1) % pattern == 0 ? 0 : window);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::uint32_t> ReadSlidingWindow(const ConfigReader& config, std::uint32_t absent) {
  if (config.IsNull("sliding_window")) return 0u;
  return config.IntegerOr("sliding_window", absent, 1, kMaxPosition);
}

}  // namespace penstock::shard
