#include "shard/adapters/adapter_config.h"

#include <absl/status/status.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <string_view>

#include "common/status.h"
#include "shard/weights/config_reader.h"

namespace penstock::shard {
namespace {

namespace json = boost::json;

constexpr std::string_view kFile = "adapter_config.json";
constexpr std::size_t kMostPatterns = 4096;
constexpr double kMostAlpha = 1e6;

// Keys that are read, and keys that matter to training alone.
constexpr std::array<std::string_view, 33> kKnownKeys = {
    "peft_type",       "r",
    "lora_alpha",      "use_rslora",
    "rank_pattern",    "alpha_pattern",
    "target_modules",  "bias",
    "modules_to_save", "use_dora",
    "fan_in_fan_out",  "init_lora_weights",
    "auto_mapping",    "base_model_name_or_path",
    "revision",        "task_type",
    "inference_mode",  "peft_version",
    "lora_dropout",    "exclude_modules",
    "layers_pattern",  "layers_to_transform",
    "loftq_config",    "eva_config",
    "corda_config",    "lora_ga_config",
    "megatron_core",   "qalora_group_size",
    "runtime_config",  "target_parameters",
    "lora_bias",       "layer_replication",
    "use_qalora"};

// Whether a key says anything: not null, false, 0 or empty.
bool IsSet(const json::value& value) {
  if (value.is_null()) return false;
  if (value.is_bool()) return value.get_bool();
  if (value.is_string()) return !value.get_string().empty();
  if (value.is_array()) return !value.get_array().empty();
  if (value.is_object()) return !value.get_object().empty();
  return !(value.is_number() && value.to_number<double>() == 0);
}

std::string Shown(const json::value& value) {
  constexpr std::size_t kMost = 100;
  std::string text = json::serialize(value);
  if (text.size() > kMost) text = text.substr(0, kMost) + "...";
  return text;
}

absl::Status Refused(std::string_view key, const json::value& value, std::string_view why) {
  return absl::InvalidArgumentError(std::string(kFile) + ": `" + std::string(key) + "` " +
                                    std::string(why) + ". Given: " + Shown(value));
}

// Keys that must say nothing, and why.
struct Unsupported {
  std::string_view key;
  std::string_view why;
};
constexpr Unsupported kUnsupported[] = {
    {"use_dora", "is not supported: DoRA also changes the lengths of the base weights"},
    {"modules_to_save", "is not supported: an adapter may not bring whole modules"},
    {"lora_bias", "is not supported: an adapter may not bring biases"},
    {"target_parameters", "is not supported: only linear modules are adapted"},
    {"layer_replication", "is not supported: an adapter may not repeat layers"},
    {"use_qalora", "is not supported"},
};

absl::Status CheckKeys(const json::object& object) {
  for (const Unsupported& one : kUnsupported) {
    const json::value* value = object.if_contains(one.key);
    if (value != nullptr && IsSet(*value)) return Refused(one.key, *value, one.why);
  }
  for (const auto& [key, value] : object) {
    const std::string_view name(key.data(), key.size());
    if (std::find(kKnownKeys.begin(), kKnownKeys.end(), name) != kKnownKeys.end()) continue;
    if (IsSet(value)) return Refused(name, value, "is not understood");
  }
  return absl::OkStatus();
}

// Refuses methods of initialisation that change the weights of the base model.
absl::Status CheckInitialisation(const json::object& object) {
  const json::value* value = object.if_contains("init_lora_weights");
  if (value == nullptr || !value->is_string()) return absl::OkStatus();
  const std::string_view method(value->get_string().data(), value->get_string().size());
  for (const std::string_view known : {"gaussian", "eva", "orthogonal"}) {
    if (method == known) return absl::OkStatus();
  }
  return Refused("init_lora_weights", *value,
                 "must be true, false, gaussian, eva or orthogonal: other methods change the base "
                 "weights; convert the adapter to plain LoRA");
}

absl::StatusOr<ModulePattern> TargetsOf(const json::object& object, const ConfigReader& reader) {
  const json::value* value = object.if_contains("target_modules");
  if (value == nullptr || value->is_null()) {
    return reader.Bad("target_modules", "a list of names, a regular expression or all-linear");
  }
  if (value->is_string()) {
    const std::string text(value->get_string());
    if (text == "all-linear") return ModulePattern();
    auto pattern = ModulePattern::Whole(text);
    if (pattern.ok()) return pattern;
    return Refused("target_modules", *value,
                   "must be a regular expression of RE2 (" + Message(pattern.status()) + ")");
  }
  PENSTOCK_ASSIGN_OR_RETURN(std::vector<std::string> names, reader.StringsOr("target_modules"));
  if (names.empty() || names.size() > kMostPatterns) {
    return reader.Bad("target_modules", "a list of 1 to 4096 names");
  }
  return ModulePattern::OneOf(std::move(names));
}

// An object of patterns and numbers in [low, high].
absl::StatusOr<std::vector<std::pair<ModulePattern, double>>> PatternsOf(const json::object& object,
                                                                         const char* key,
                                                                         double low, double high) {
  std::vector<std::pair<ModulePattern, double>> patterns;
  const json::value* value = object.if_contains(key);
  if (value == nullptr || value->is_null()) return patterns;
  if (!value->is_object() || value->get_object().size() > kMostPatterns) {
    return Refused(key, *value, "must be an object of at most 4096 modules and numbers");
  }
  for (const auto& [name, number] : value->get_object()) {
    const std::string where = std::string(key) + "." + std::string(name);
    auto pattern = ModulePattern::End(std::string(name));
    if (!pattern.ok()) {
      return Refused(
          where, number,
          "must be named by a regular expression of RE2 (" + Message(pattern.status()) + ")");
    }
    const double wanted = number.is_number() ? number.to_number<double>() : low - 1;
    if (!(wanted >= low && wanted <= high)) {
      return Refused(where, number,
                     "must be a number from " + std::to_string(static_cast<std::int64_t>(low)) +
                         " to " + std::to_string(static_cast<std::int64_t>(high)));
    }
    patterns.emplace_back(*std::move(pattern), wanted);
  }
  return patterns;
}

template <class Number>
Number FirstMatch(const std::vector<std::pair<ModulePattern, Number>>& patterns,
                  const std::string& module, Number otherwise) {
  for (const auto& [pattern, number] : patterns) {
    if (pattern.Matches(module)) return number;
  }
  return otherwise;
}

}  // namespace

std::uint32_t AdapterConfig::RankOf(const std::string& module) const {
  return FirstMatch(ranks, module, rank);
}

float AdapterConfig::ScaleOf(const std::string& module) const {
  const double of_module = RankOf(module);
  const double divisor = rank_stabilized ? std::sqrt(of_module) : of_module;
  return static_cast<float>(FirstMatch(alphas, module, alpha) / divisor);
}

absl::StatusOr<AdapterConfig> ParseAdapterConfig(const std::string& text) {
  PENSTOCK_ASSIGN_OR_RETURN(const json::object object, ParseConfig(text, std::string(kFile)));
  const ConfigReader reader(object, std::string(kFile));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string type, reader.StringOr("peft_type", ""));
  if (type != "LORA") return reader.Bad("peft_type", "LORA");
  PENSTOCK_RETURN_IF_ERROR(CheckKeys(object));
  PENSTOCK_RETURN_IF_ERROR(CheckInitialisation(object));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string bias, reader.StringOr("bias", "none"));
  if (bias != "none") return reader.Bad("bias", "none: an adapter may not bring biases");
  AdapterConfig config;
  PENSTOCK_ASSIGN_OR_RETURN(config.rank, reader.IntegerOr("r", 8, 1, kMostLoraRank));
  PENSTOCK_ASSIGN_OR_RETURN(config.alpha,
                            reader.NumberOr("lora_alpha", 8, -kMostAlpha, kMostAlpha));
  PENSTOCK_ASSIGN_OR_RETURN(config.rank_stabilized, reader.BoolOr("use_rslora", false));
  PENSTOCK_ASSIGN_OR_RETURN(config.targets, TargetsOf(object, reader));
  PENSTOCK_ASSIGN_OR_RETURN(auto ranks, PatternsOf(object, "rank_pattern", 1, kMostLoraRank));
  for (const auto& [pattern, number] : ranks) {
    config.ranks.emplace_back(pattern, static_cast<std::uint32_t>(number));
  }
  PENSTOCK_ASSIGN_OR_RETURN(config.alphas,
                            PatternsOf(object, "alpha_pattern", -kMostAlpha, kMostAlpha));
  return config;
}

}  // namespace penstock::shard
