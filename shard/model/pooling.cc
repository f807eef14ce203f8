#include "shard/model/pooling.h"

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <filesystem>
#include <utility>

#include "common/status.h"
#include "shard/weights/checkpoint_index.h"
#include "shard/weights/config_reader.h"

namespace penstock::shard {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxFileBytes = 4 << 20;
constexpr std::uint32_t kMaxWidth = 1u << 20;
constexpr std::uint32_t kMaxTokens = 1u << 30;
constexpr std::size_t kMaxLabels = 1u << 16;
constexpr std::size_t kMaxModules = 16;
constexpr char kModules[] = "modules.json";

constexpr std::array kTasks = {std::pair{Task::kGenerate, std::string_view("generate")},
                               std::pair{Task::kEmbed, std::string_view("embed")},
                               std::pair{Task::kClassify, std::string_view("classify")}};
constexpr std::array kPoolings = {std::pair{PoolingKind::kCls, std::string_view("cls")},
                                  std::pair{PoolingKind::kMean, std::string_view("mean")},
                                  std::pair{PoolingKind::kLast, std::string_view("last")},
                                  std::pair{PoolingKind::kMax, std::string_view("max")}};

template <class Table, class Key>
std::string_view NameIn(const Table& table, Key key) {
  const auto found = std::ranges::find(table, key, [](const auto& row) { return row.first; });
  return found == table.end() ? "" : found->second;
}

template <class Table>
auto KeyIn(const Table& table, std::string_view name) {
  using Key = typename Table::value_type::first_type;
  const auto found = std::ranges::find(table, name, [](const auto& row) { return row.second; });
  return found == table.end() ? std::optional<Key>() : std::optional<Key>(found->first);
}

// A JSON object of the folder; nothing if there is no such file.
absl::StatusOr<std::optional<boost::json::object>> ReadObject(const std::string& folder,
                                                              const std::string& file) {
  const auto text = ReadSmallFile((fs::path(folder) / file).string(), kMaxFileBytes);
  if (absl::IsNotFound(text.status())) return std::optional<boost::json::object>();
  if (!text.ok()) return WithContext(text.status(), file);
  PENSTOCK_ASSIGN_OR_RETURN(boost::json::object object, ParseConfig(*text, file));
  return std::optional(std::move(object));
}

// ---- sentence-transformers ----

struct Module {
  std::string kind;  // the last part of its class: "Pooling"
  std::string path;  // below the folder
};

absl::StatusOr<std::vector<Module>> ReadModules(const std::string& folder) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::string text,
                            ReadSmallFile((fs::path(folder) / kModules).string(), kMaxFileBytes));
  boost::system::error_code error;
  const boost::json::value list = boost::json::parse(text, error);
  const auto bad = [] {
    return absl::InvalidArgumentError(std::string(kModules) +
                                      ": must be a list of at most 16 modules with type and path");
  };
  if (error || !list.is_array() || list.as_array().size() > kMaxModules) return bad();
  std::vector<Module> modules;
  for (const boost::json::value& item : list.as_array()) {
    const auto* object = item.if_object();
    if (object == nullptr) return bad();
    const ConfigReader reader(*object, kModules);
    PENSTOCK_ASSIGN_OR_RETURN(const std::string type, reader.StringOr("type", ""));
    PENSTOCK_ASSIGN_OR_RETURN(const std::string path, reader.StringOr("path", ""));
    if (path.find("..") != std::string::npos || path.starts_with('/')) {
      return reader.Bad("path", "a folder of the model's folder");
    }
    modules.push_back({type.substr(type.rfind('.') + 1), path});
  }
  return modules;
}

// 1_Pooling/config.json has a flag for each way; newer releases write the name of one.
absl::StatusOr<PoolingKind> ReadKind(const std::string& folder, const Module& module) {
  const std::string file = (fs::path(module.path) / "config.json").string();
  PENSTOCK_ASSIGN_OR_RETURN(const auto object, ReadObject(folder, file));
  if (!object) return absl::NotFoundError(file + ": does not exist");
  const ConfigReader reader(*object, file);
  PENSTOCK_ASSIGN_OR_RETURN(const std::string name, reader.StringOr("pooling_mode", ""));
  if (!name.empty()) {
    const auto kind = ParsePooling(name == "lasttoken" ? "last" : name);
    return kind ? absl::StatusOr<PoolingKind>(*kind)
                : reader.Bad("pooling_mode", "cls, mean, lasttoken or max");
  }
  constexpr std::array kFlags = {
      std::pair{"pooling_mode_cls_token", PoolingKind::kCls},
      std::pair{"pooling_mode_mean_tokens", PoolingKind::kMean},
      std::pair{"pooling_mode_lasttoken", PoolingKind::kLast},
      std::pair{"pooling_mode_max_tokens", PoolingKind::kMax},
  };
  std::vector<PoolingKind> kinds;
  for (const auto& [flag, kind] : kFlags) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool on, reader.BoolOr(flag, false));
    if (on) kinds.push_back(kind);
  }
  for (const char* flag :
       {"pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens"}) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool on, reader.BoolOr(flag, false));
    if (on) return reader.Bad(flag, "false: this pooling is not supported");
  }
  if (kinds.size() == 1) return kinds.front();
  return absl::InvalidArgumentError(file +
                                    ": exactly one of pooling_mode_cls_token, "
                                    "pooling_mode_mean_tokens, pooling_mode_lasttoken and "
                                    "pooling_mode_max_tokens must be true");
}

absl::StatusOr<HeadLayer> ReadDense(const std::string& folder, const Module& module) {
  const std::string file = (fs::path(module.path) / "config.json").string();
  PENSTOCK_ASSIGN_OR_RETURN(const auto object, ReadObject(folder, file));
  if (!object) return absl::NotFoundError(file + ": does not exist");
  const ConfigReader reader(*object, file);
  HeadLayer layer{.folder = module.path, .name = "linear"};
  PENSTOCK_ASSIGN_OR_RETURN(layer.inputs, reader.Integer("in_features", 1, kMaxWidth));
  PENSTOCK_ASSIGN_OR_RETURN(layer.outputs, reader.Integer("out_features", 1, kMaxWidth));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string name, reader.StringOr("activation_function", ""));
  const std::string function = name.substr(name.rfind('.') + 1);
  if (function == "Tanh") {
    layer.activation = HeadActivation::kTanh;
  } else if (function == "ReLU") {
    layer.activation = HeadActivation::kRelu;
  } else if (function == "GELU") {
    layer.activation = HeadActivation::kGelu;
  } else if (!function.empty() && function != "Identity") {
    return reader.Bad("activation_function", "Identity, Tanh, ReLU or GELU of torch");
  }
  return layer;
}

absl::Status ReadSentenceModules(const std::string& folder, Pooling& pooling) {
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<Module> modules, ReadModules(folder));
  for (const Module& module : modules) {
    if (module.kind == "Transformer") continue;
    if (module.kind == "Pooling") {
      PENSTOCK_ASSIGN_OR_RETURN(pooling.kind, ReadKind(folder, module));
    } else if (module.kind == "Dense") {
      PENSTOCK_ASSIGN_OR_RETURN(HeadLayer layer, ReadDense(folder, module));
      pooling.layers.push_back(std::move(layer));
    } else if (module.kind == "Normalize") {
      pooling.normalized = true;
    } else {
      return BadValue(std::string(kModules) + ": type", module.kind,
                      "one of Transformer, Pooling, Dense and Normalize");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadLength(const std::string& folder, Pooling& pooling) {
  const std::string file = "sentence_bert_config.json";
  PENSTOCK_ASSIGN_OR_RETURN(const auto object, ReadObject(folder, file));
  if (!object) return absl::OkStatus();
  const ConfigReader reader(*object, file);
  PENSTOCK_ASSIGN_OR_RETURN(const bool lower, reader.BoolOr("do_lower_case", false));
  if (lower) return reader.Bad("do_lower_case", "false: the tokenizer must do it");
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t most,
                            reader.IntegerOr("max_seq_length", pooling.max_tokens, 1, kMaxTokens));
  pooling.max_tokens = std::min(pooling.max_tokens, most);
  return absl::OkStatus();
}

// ---- classifiers ----

// `id2label` of config.json, or else as many as `num_labels`, of which 2 are usual.
absl::StatusOr<std::vector<std::string>> ReadLabels(const boost::json::object& object,
                                                    const ConfigReader& config) {
  const auto* names = object.if_contains("id2label");
  std::vector<std::string> labels;
  if (names == nullptr || !names->is_object()) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::uint32_t count,
                              config.IntegerOr("num_labels", 2, 1, kMaxLabels));
    for (std::uint32_t i = 0; i < count; ++i) labels.push_back("LABEL_" + std::to_string(i));
    return labels;
  }
  const boost::json::object& by_id = names->get_object();
  if (by_id.empty() || by_id.size() > kMaxLabels) {
    return config.Bad("id2label", "an object of 1 to 65536 names");
  }
  for (std::size_t i = 0; i < by_id.size(); ++i) {
    const auto* label = by_id.if_contains(std::to_string(i));
    if (label == nullptr || !label->is_string()) {
      return config.Bad("id2label", "names for the ids from 0 on, without a gap");
    }
    labels.emplace_back(label->get_string());
  }
  return labels;
}

// Cross-encoders of sentence-transformers name the function of their scores.
absl::StatusOr<bool> HasPlainScores(const ConfigReader& config, std::size_t labels) {
  PENSTOCK_ASSIGN_OR_RETURN(std::string name,
                            config.StringOr("sbert_ce_default_activation_function", ""));
  PENSTOCK_ASSIGN_OR_RETURN(const auto own, config.Object("sentence_transformers"));
  if (own.has_value()) {
    PENSTOCK_ASSIGN_OR_RETURN(name, own->StringOr("activation_fn", name));
  }
  if (name.empty()) return labels != 1;
  if (name.ends_with(".Identity")) return true;
  if (name.ends_with(".Sigmoid")) return false;
  return absl::InvalidArgumentError(
      "config.json: the activation function of scores must be Identity or Sigmoid of torch. "
      "Given: " +
      name);
}

absl::Status ReadClasses(const boost::json::object& object, const ModelSpec& spec,
                         Pooling& pooling) {
  const ConfigReader config(object, "config.json");
  PENSTOCK_ASSIGN_OR_RETURN(pooling.labels, ReadLabels(object, config));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string problem, config.StringOr("problem_type", ""));
  pooling.sigmoid = problem == "multi_label_classification" || pooling.labels.size() == 1;
  PENSTOCK_ASSIGN_OR_RETURN(pooling.plain_scores, HasPlainScores(config, pooling.labels.size()));
  pooling.kind = spec.class_pooling;
  pooling.layers = spec.class_layers;
  if (pooling.layers.empty()) pooling.layers.push_back({.name = "score", .inputs = spec.hidden});
  pooling.layers.back().outputs = static_cast<std::uint32_t>(pooling.labels.size());
  return absl::OkStatus();
}

absl::Status CheckWidths(const Pooling& pooling, std::uint32_t width) {
  for (const HeadLayer& layer : pooling.layers) {
    if (layer.inputs != width) {
      return BadValue(layer.folder + " " + layer.name + ": inputs", std::to_string(layer.inputs),
                      std::to_string(width) + ", the width before it");
    }
    width = layer.outputs;
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view TaskName(Task task) { return NameIn(kTasks, task); }
std::optional<Task> ParseTask(std::string_view name) { return KeyIn(kTasks, name); }
std::string_view PoolingName(PoolingKind kind) { return NameIn(kPoolings, kind); }
std::optional<PoolingKind> ParsePooling(std::string_view name) { return KeyIn(kPoolings, name); }

bool HasSentenceModules(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / kModules, ignored);
}

absl::StatusOr<Pooling> ReadPooling(const std::string& folder, const std::string& config_json,
                                    std::optional<PoolingKind> wanted, const ModelSpec& spec) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto object, ParseConfig(config_json, "config.json"));
  Pooling pooling;
  pooling.max_tokens = spec.max_position;
  PENSTOCK_RETURN_IF_ERROR(ReadLength(folder, pooling));
  if (spec.task == Task::kClassify) {
    PENSTOCK_RETURN_IF_ERROR(ReadClasses(object, spec, pooling));
  } else if (HasSentenceModules(folder)) {
    PENSTOCK_RETURN_IF_ERROR(ReadSentenceModules(folder, pooling));
  } else {
    pooling.kind = spec.both_ways ? PoolingKind::kMean : PoolingKind::kLast;
    pooling.normalized = true;
  }
  pooling.kind = wanted.value_or(pooling.kind);
  PENSTOCK_RETURN_IF_ERROR(CheckWidths(pooling, spec.hidden));
  pooling.outputs = pooling.layers.empty() ? spec.hidden : pooling.layers.back().outputs;
  return pooling;
}

}  // namespace penstock::shard
