#include "shard/model/model_spec.h"

#include <algorithm>
#include <array>

#include "common/status.h"
#include "shard/model/config_reader.h"
#include "shard/model/rope_config.h"

namespace penstock::shard {
namespace {

constexpr std::uint32_t kMaxHidden = 1u << 20;
constexpr std::uint32_t kMaxLayers = 4096;
constexpr std::uint32_t kMaxHeads = 1u << 14;
constexpr std::uint32_t kMaxHeadDim = 4096;
constexpr std::uint32_t kMaxIntermediate = 1u << 24;
constexpr std::uint32_t kMaxVocabulary = 1u << 24;
constexpr std::uint32_t kMaxPosition = 2147483647u;

// Class defaults of transformers, which hold where config.json lacks the key.
struct Family {
  std::string_view model_type;
  bool qk_norm;
  std::uint32_t head_dim;        // 0 = hidden / heads
  std::uint32_t kv_heads;        // 0 = heads
  std::uint32_t sliding_window;  // when `sliding_window` is absent
  bool window_needs_switch;      // only with `use_sliding_window`
};

constexpr std::array<Family, 4> kFamilies = {{
    {"llama", false, 0, 0, 0, false},
    {"mistral", false, 0, 8, 4096, false},
    {"qwen2", false, 0, 32, 4096, true},
    {"qwen3", true, 128, 32, 4096, true},
}};

absl::StatusOr<Family> FindFamily(const ConfigReader& config) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string type, config.StringOr("model_type", ""));
  for (const Family& family : kFamilies) {
    if (family.model_type == type) return family;
  }
  return config.Bad("model_type", "one of llama, mistral, qwen2, qwen3");
}

// What would silently give wrong tokens if it were ignored.
absl::Status RefuseUnsupported(const ConfigReader& config) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (config.Has(key)) {
      return config.Bad(key, "absent: quantised checkpoints are not supported");
    }
  }
  if (config.Has("auto_map")) {
    return config.Bad("auto_map", "absent: models that bring their own code are not supported");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto architectures, config.StringsOr("architectures"));
  for (const std::string& name : architectures) {
    if (!name.ends_with("ForCausalLM") && !name.ends_with("LMHeadModel")) {
      return config.Bad("architectures", "a causal language model (…ForCausalLM)");
    }
  }
  const char* key = "hidden_act";
  PENSTOCK_ASSIGN_OR_RETURN(const std::string activation, config.StringOr(key, "silu"));
  if (activation != "silu" && activation != "swish") return config.Bad(key, "silu");
  return absl::OkStatus();
}

absl::Status ReadSizes(const ConfigReader& config, const Family& family, ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(spec.hidden, config.Integer("hidden_size", 1, kMaxHidden));
  PENSTOCK_ASSIGN_OR_RETURN(spec.layers, config.Integer("num_hidden_layers", 1, kMaxLayers));
  PENSTOCK_ASSIGN_OR_RETURN(spec.heads, config.Integer("num_attention_heads", 1, kMaxHeads));
  const std::uint32_t kv_heads = family.kv_heads == 0 ? spec.heads : family.kv_heads;
  PENSTOCK_ASSIGN_OR_RETURN(spec.kv_heads,
                            config.IntegerOr("num_key_value_heads", kv_heads, 1, spec.heads));
  if (spec.kv_heads > spec.heads || spec.heads % spec.kv_heads != 0) {
    return config.Bad("num_key_value_heads",
                      "a divisor of `num_attention_heads` " + std::to_string(spec.heads));
  }
  if (!config.Has("head_dim") && family.head_dim == 0 && spec.hidden % spec.heads != 0) {
    return config.Bad("num_attention_heads",
                      "a divisor of `hidden_size` " + std::to_string(spec.hidden));
  }
  const std::uint32_t head_dim = family.head_dim != 0 ? family.head_dim : spec.hidden / spec.heads;
  PENSTOCK_ASSIGN_OR_RETURN(spec.head_dim, config.IntegerOr("head_dim", head_dim, 2, kMaxHeadDim));
  if (spec.head_dim < 2 || spec.head_dim % 2 != 0) {
    return config.Bad("head_dim", "even (hidden_size / num_attention_heads gives " +
                                      std::to_string(head_dim) + ")");
  }
  PENSTOCK_ASSIGN_OR_RETURN(spec.intermediate,
                            config.Integer("intermediate_size", 1, kMaxIntermediate));
  PENSTOCK_ASSIGN_OR_RETURN(spec.vocabulary, config.Integer("vocab_size", 1, kMaxVocabulary));
  PENSTOCK_ASSIGN_OR_RETURN(const double eps, config.NumberOr("rms_norm_eps", 1e-6, 0.0, 1.0));
  spec.norm_eps = static_cast<float>(eps);
  return absl::OkStatus();
}

absl::StatusOr<std::uint32_t> ReadWindow(const ConfigReader& config, const Family& family,
                                         bool present) {
  // JSON null means "no window", absence means the class default.
  if (present && !config.Has("sliding_window")) return 0u;
  if (family.window_needs_switch) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool use, config.BoolOr("use_sliding_window", false));
    if (!use) return 0u;
  }
  return config.IntegerOr("sliding_window", family.sliding_window, 1, kMaxPosition);
}

absl::Status ReadWindows(const ConfigReader& config, const Family& family, bool present,
                         ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t window, ReadWindow(config, family, present));
  PENSTOCK_ASSIGN_OR_RETURN(const auto types, config.StringsOr("layer_types"));
  if (types.empty()) {
    std::uint32_t first = 0;  // of the layers with a window
    if (family.window_needs_switch) {
      PENSTOCK_ASSIGN_OR_RETURN(first, config.IntegerOr("max_window_layers", 28, 0, kMaxLayers));
    }
    for (std::uint32_t i = 0; i < spec.layers; ++i) {
      spec.windows.push_back(i >= first ? window : 0);
    }
    return absl::OkStatus();
  }
  if (types.size() != spec.layers) {
    return config.Bad("layer_types", "a list of " + std::to_string(spec.layers) + " names");
  }
  for (const std::string& type : types) {
    if (type != "full_attention" && type != "sliding_attention") {
      return config.Bad("layer_types", "full_attention or sliding_attention for each layer");
    }
    spec.windows.push_back(type == "sliding_attention" ? window : 0);
  }
  return absl::OkStatus();
}

absl::Status ReadDType(const ConfigReader& config, ModelSpec& spec) {
  const char* key = config.Has("dtype") ? "dtype" : "torch_dtype";
  PENSTOCK_ASSIGN_OR_RETURN(const std::string name, config.StringOr(key, ""));
  if (name.empty()) return absl::OkStatus();
  spec.stored_dtype = ParseDType(name);
  if (!spec.stored_dtype) return config.Bad(key, "one of float32, bfloat16, float16");
  return absl::OkStatus();
}

// generation_config.json wins: it often has more end tokens.
absl::Status ReadSpecialTokens(const ConfigReader& config, const std::string& generation_json,
                               ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(spec.eos_token_ids, config.TokenIds("eos_token_id", spec.vocabulary));
  PENSTOCK_ASSIGN_OR_RETURN(auto bos, config.TokenIds("bos_token_id", spec.vocabulary));
  if (!generation_json.empty()) {
    const std::string file = "generation_config.json";
    PENSTOCK_ASSIGN_OR_RETURN(const auto object, ParseConfig(generation_json, file));
    const ConfigReader generation(object, file);
    if (generation.Has("eos_token_id")) {
      PENSTOCK_ASSIGN_OR_RETURN(spec.eos_token_ids,
                                generation.TokenIds("eos_token_id", spec.vocabulary));
    }
    if (generation.Has("bos_token_id")) {
      PENSTOCK_ASSIGN_OR_RETURN(bos, generation.TokenIds("bos_token_id", spec.vocabulary));
    }
  }
  if (!bos.empty()) spec.bos_token_id = bos.front();
  return absl::OkStatus();
}

// Biases, tied head and the prefix of the names are facts of the checkpoint.
absl::Status ReadTensorPresence(const ConfigReader& config, const Checkpoint& checkpoint,
                                ModelSpec& spec) {
  const auto has = [&checkpoint](const std::string& name) {
    return checkpoint.Find(name) != nullptr;
  };
  const bool bare = !has("model.norm.weight") && has("norm.weight");
  spec.prefix = bare ? "" : "model.";
  spec.embedding_tensor = spec.prefix + "embed_tokens.weight";
  spec.head_tensor = "lm_head.weight";
  PENSTOCK_ASSIGN_OR_RETURN(const bool tied, config.BoolOr("tie_word_embeddings", false));
  if (tied) {
    // Careless files hold only the other name.
    if (!has(spec.embedding_tensor) && has(spec.head_tensor)) {
      spec.embedding_tensor = spec.head_tensor;
    }
    spec.head_tensor = spec.embedding_tensor;
  } else if (!config.Has("tie_word_embeddings") && !has(spec.head_tensor)) {
    spec.head_tensor = spec.embedding_tensor;
  }
  const std::string layer = spec.prefix + "layers.0.";
  spec.qkv_bias = has(layer + "self_attn.q_proj.bias");
  spec.output_bias = has(layer + "self_attn.o_proj.bias");
  spec.gate_up_bias = has(layer + "mlp.gate_proj.bias");
  spec.down_bias = has(layer + "mlp.down_proj.bias");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelSpec> ReadModelSpec(const std::string& config_json,
                                        const std::string& generation_config_json,
                                        const Checkpoint& checkpoint) {
  const std::string file = "config.json";
  PENSTOCK_ASSIGN_OR_RETURN(const auto object, ParseConfig(config_json, file));
  const ConfigReader config(object, file);
  PENSTOCK_ASSIGN_OR_RETURN(const Family family, FindFamily(config));
  PENSTOCK_RETURN_IF_ERROR(RefuseUnsupported(config));
  ModelSpec spec;
  spec.model_type = family.model_type;
  spec.qk_norm = family.qk_norm;
  PENSTOCK_RETURN_IF_ERROR(ReadSizes(config, family, spec));
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t max_position,
                            config.Integer("max_position_embeddings", 1, kMaxPosition));
  PENSTOCK_ASSIGN_OR_RETURN(const RopeConfig rope, ReadRopeConfig(config, max_position));
  spec.rope = rope.rope;
  spec.max_position = rope.max_position;
  const bool window_key = object.contains("sliding_window");
  PENSTOCK_RETURN_IF_ERROR(ReadWindows(config, family, window_key, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadDType(config, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadSpecialTokens(config, generation_config_json, spec));
  PENSTOCK_RETURN_IF_ERROR(ReadTensorPresence(config, checkpoint, spec));
  return spec;
}

}  // namespace penstock::shard
