#include "launcher/serving/serving_properties.h"

#include <absl/status/status.h>
#include <absl/strings/ascii.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "common/log.h"
#include "common/status.h"
#include "launcher/read_file.h"
#include "launcher/serving/java_properties.h"
#include "launcher/serving/serving_keys.h"

namespace penstock::launcher {
namespace {

namespace fs = std::filesystem;
using options::ConfigEntry;

constexpr std::string_view kFileName = "serving.properties";
constexpr std::int64_t kDefaultBatch = 32;
constexpr std::int64_t kDefaultQueue = 1000;
constexpr std::int64_t kMostRequests = 65536;  // of --max-concurrent-requests

std::string LowerCase(std::string_view text) { return absl::AsciiStrToLower(std::string(text)); }

// The key that a variable sets; empty if it sets none.
std::string KeyOf(std::string_view variable) {
  constexpr std::pair<std::string_view, std::string_view> kOwn[] = {
      {"HF_MODEL_ID", "option.model_id"},
      {"HF_REVISION", "option.revision"},
      {"HF_TRUST_REMOTE_CODE", "option.trust_remote_code"},
      {"TENSOR_PARALLEL_DEGREE", "option.tensor_parallel_degree"},
  };
  for (const auto& [name, key] : kOwn) {
    if (variable == name) return std::string(key);
  }
  constexpr std::string_view kOption = "OPTION_";
  constexpr std::string_view kServing = "SERVING_";
  if (variable.starts_with(kOption)) return "option." + LowerCase(variable.substr(kOption.size()));
  if (variable.starts_with(kServing)) return LowerCase(variable.substr(kServing.size()));
  return "";
}

struct Given {
  std::string key;
  std::string value;
  std::string where;
  options::Source source = options::Source::kConfigFile;
};

// Collects keys in order of precedence; a later one wins.
class Gatherer {
 public:
  Gatherer() {
    SetDefault("api-profile", "djl");
    SetDefault("hostname", "0.0.0.0");
    SetDefault("port", "8080");
    SetDefault("payload-limit", "64MiB");
    SetDefault("max-batch-size", std::to_string(kDefaultBatch));
    SetDefault("max-concurrent-requests", std::to_string(kDefaultQueue));
  }

  void Add(const Given& given) {
    const auto& [key, value, where, source] = given;
    const ServingKey* row = FindServingKey(key);
    if (row == nullptr) return Unknown(key, where);
    if (value.empty()) return;
    const KeyEffect effect = ApplyServingKey(*row, value);
    if (!effect.error.empty()) {
      errors_ +=
          (errors_.empty() ? "" : "\n") + where + ": " + key + "=" + value + ": " + effect.error;
      return;
    }
    const bool variable = source == options::Source::kEnvironment;
    const std::string origin = variable ? where : where + ": " + key;
    for (const auto& [option, text] : effect.options) {
      chosen_[option] = {option, {text}, origin, source};
    }
    if (!effect.note.empty()) settings_.notes.push_back(effect.note);
  }

  void Note(std::string text) { settings_.notes.push_back(std::move(text)); }

  // A relative folder is one beside the file.
  void PlaceModel(const std::string& folder) {
    const auto [model, absent] = chosen_.try_emplace(
        "model-id", ConfigEntry{"model-id", {folder}, "the folder of the properties"});
    if (absent) return;
    std::string& value = model->second.values.front();
    const fs::path beside = fs::path(folder) / value;
    std::error_code error;
    if (!fs::is_directory(value, error) && fs::is_directory(beside, error)) value = beside.string();
  }

  // `batch_size`: the value of an option that overrides the file; empty: none.
  absl::StatusOr<ServingSettings> Finish(const std::string& batch_size) {
    if (!errors_.empty()) return absl::InvalidArgumentError(errors_);
    AddBatchToQueue(batch_size.empty() ? chosen_["max-batch-size"].values.front() : batch_size);
    for (auto& [option, entry] : chosen_) settings_.entries.push_back(std::move(entry));
    return std::move(settings_);
  }

 private:
  void SetDefault(const std::string& option, std::string text) {
    chosen_[option] = {option, {std::move(text)}, "djl", options::Source::kProfile};
  }

  void Unknown(const std::string& key, const std::string& where) {
    std::string line = where + ": " + key + ": unknown, ignored";
    const std::string near = NearestServingKey(key);
    if (!near.empty()) line += "; did you mean " + near + "?";
    settings_.warnings.push_back(std::move(line));
  }

  // The queue of DJL-Serving excludes the running batch; --max-concurrent-requests includes it.
  void AddBatchToQueue(const std::string& batch) {
    std::string& requests = chosen_["max-concurrent-requests"].values.front();
    const bool numbers = batch.find_first_not_of("0123456789") == batch.npos && batch.size() < 10;
    if (!numbers || requests.size() > 10) return;  // refused as it is
    requests = std::to_string(
        std::min<std::int64_t>(kMostRequests, std::stoll(requests) + std::stoll(batch)));
  }

  ServingSettings settings_;
  std::string errors_;
  std::map<std::string, ConfigEntry> chosen_;  // by option
};

std::vector<Variable> ProcessEnvironment() {
  std::vector<Variable> variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    variables.push_back(
        {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  return variables;
}

bool IsKey(const std::string& key, std::string_view name) {
  const ServingKey* row = FindServingKey(key);
  return row != nullptr && row->name == name;
}

// Applies `batch_size` last, since `rolling_batch` decides whether it counts.
void AddInOrder(std::vector<Given> given, Gatherer& gatherer) {
  std::ranges::stable_partition(given,
                                [](const Given& item) { return !IsKey(item.key, "batch_size"); });
  bool rolls = false;
  for (const Given& item : given) {
    if (IsKey(item.key, "rolling_batch")) rolls = item.value != "disable";
    if (rolls && IsKey(item.key, "batch_size")) {
      gatherer.Note(item.where + ": batch_size counts only with rolling_batch=disable");
      continue;
    }
    gatherer.Add(item);
  }
}

}  // namespace

absl::StatusOr<ServingSettings> ParseServingProperties(std::string_view text,
                                                       const std::string& name,
                                                       const std::string& folder,
                                                       const std::vector<Variable>& environment,
                                                       const std::string& batch_size) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto properties, ParseJavaProperties(text, name));
  std::vector<Given> given;
  for (const Variable& variable : environment) {
    const std::string key = KeyOf(variable.name);
    const ServingKey* row = FindServingKey(key);
    const bool overridden = std::ranges::any_of(properties, [&](const Property& property) {
      return property.key == key || (row != nullptr && FindServingKey(property.key) == row);
    });
    // Other software uses the prefix SERVING_ too, so unknown names are ignored.
    if (overridden || (row == nullptr && !key.starts_with("option."))) continue;
    given.push_back({key, variable.value, variable.name, options::Source::kEnvironment});
  }
  for (const Property& property : properties) {
    given.push_back({property.key, property.value, name + ":" + std::to_string(property.line)});
  }
  Gatherer gatherer;
  AddInOrder(std::move(given), gatherer);
  gatherer.PlaceModel(folder);
  return gatherer.Finish(batch_size);
}

absl::StatusOr<ServingSettings> ReadServingProperties(const std::string& path,
                                                      const std::vector<Variable>& environment,
                                                      const std::string& batch_size) {
  std::error_code error;
  fs::path file = path;
  if (fs::is_directory(path, error)) {
    file /= kFileName;
    if (!fs::exists(file, error)) {
      return ParseServingProperties("", path, path, environment, batch_size);
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      const std::string text,
      ReadFile(file.string(),
               "--serving-properties " + path + (file == path ? "" : "/serving.properties") + ":"));
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  return ParseServingProperties(text, file.string(), folder.string(), environment, batch_size);
}

options::ReadMore ServingSource::Reader() {
  return [this](const auto& text_of) { return Read(text_of); };
}

absl::StatusOr<std::vector<ConfigEntry>> ServingSource::Read(
    const std::function<std::string(std::string_view)>& text_of) {
  std::string path = text_of("serving-properties");
  if (path.empty() && text_of("api-profile") == "djl") path = kDjlModelFolder;
  if (path.empty()) return std::vector<ConfigEntry>();
  std::error_code error;
  const bool assumed = text_of("serving-properties").empty() && !fs::is_directory(path, error);
  const std::string batch = text_of("max-batch-size");
  absl::StatusOr<ServingSettings> settings =
      assumed ? ParseServingProperties("", path, path, ProcessEnvironment(), batch)
              : ReadServingProperties(path, ProcessEnvironment(), batch);
  if (!settings.ok()) return settings.status();
  from_ = assumed ? "--api-profile djl sets, where nothing else does" : path + " sets";
  settings_ = *std::move(settings);
  return settings_.entries;
}

std::string ServingSource::Describe(const options::Values& values) const {
  std::string chosen;
  for (const ConfigEntry& entry : settings_.entries) {
    const bool counts =
        values.SourceOf(entry.key) == entry.source && values.WhereOf(entry.key) == entry.where;
    if (counts) chosen += " --" + entry.key + " " + values.TextOf(entry.key);
  }
  return chosen.empty() ? "" : from_ + ":" + chosen;
}

void ServingSource::Tell(const options::Values& values) const {
  if (const std::string text = Describe(values); !text.empty()) log::Info(text);
  for (const std::string& note : settings_.notes) log::Info(note);
  for (const std::string& warning : settings_.warnings) log::Warn(warning);
}

}  // namespace penstock::launcher
