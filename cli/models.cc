#include "cli/models.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdio>
#include <filesystem>

#include "cli/memory_needs.h"
#include "cli/model_folder.h"
#include "common/exit_codes.h"
#include "common/human_bytes.h"
#include "common/json_text.h"
#include "common/status.h"
#include "launcher/hub/hub_cache.h"
#include "launcher/shard_output.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "models--";

constexpr options::OptionSpec kModelRows[] = {
    options::OptionSpec("cache", options::Type::kPath, "",
                        "Folder of the cache. Unset: that of the launcher (HF_HUB_CACHE)."),
    options::OptionSpec("json", options::Type::kBool, "false", "Print JSON."),
};

// "models--org--name" is "org/name".
std::string NameOf(const std::string& folder) {
  std::string name = folder.substr(kPrefix.size());
  const std::size_t dashes = name.find("--");
  if (dashes != std::string::npos) name.replace(dashes, 2, "/");
  return name;
}

std::uint64_t BytesIn(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error)) bytes += entry.file_size(error);
  }
  return bytes;
}

// The snapshot of `main`, else the first there is.
std::string SnapshotOf(const hub::HubCache& cache) {
  std::error_code error;
  const auto commit = cache.CommitOf("main");
  if (commit && fs::is_directory(cache.Snapshot(*commit), error)) return cache.Snapshot(*commit);
  std::vector<std::string> snapshots;
  for (const auto& entry : fs::directory_iterator(cache.folder() / "snapshots", error)) {
    snapshots.push_back(entry.path());
  }
  return snapshots.empty() ? "" : *std::ranges::min_element(snapshots);
}

struct ModelRow {
  CachedModel model;
  std::string type;
  bool supported = false;
  bool fits = false;
  std::string note;  // why not
};

ModelRow Look(CachedModel model, options::Values values, const launcher::Machine& machine) {
  ModelRow row{std::move(model)};
  if (row.model.folder.empty()) {
    row.note = "no snapshot";
    return row;
  }
  const absl::Status set = values.Set("model-id", row.model.folder);
  const absl::StatusOr<MemoryNeeds> needs = set.ok() ? AskMemoryNeeds(values, machine) : set;
  if (!needs.ok()) {
    row.note = Message(needs.status());
    return row;
  }
  row.type = needs->model_type;
  row.supported = true;
  row.fits = needs->Fits();
  if (!row.fits) {
    row.note = "needs " + HumanBytes(needs->Fixed()) + " of " + HumanBytes(needs->free) + " free";
  }
  return row;
}

std::string JsonRows(const std::vector<ModelRow>& rows) {
  boost::json::array array;
  for (const ModelRow& row : rows) {
    array.push_back(boost::json::object{{"model", row.model.name},
                                        {"folder", row.model.folder},
                                        {"bytes", row.model.bytes},
                                        {"model_type", row.type},
                                        {"supported", row.supported},
                                        {"fits", row.fits},
                                        {"note", row.note}});
  }
  return JsonText(array) + "\n";
}

std::string TableRows(const std::vector<ModelRow>& rows) {
  std::string text;
  for (const ModelRow& row : rows) {
    const std::string state = !row.supported ? "not usable" : row.fits ? "fits" : "too large";
    char line[256];
    std::snprintf(line, sizeof line, "%-44s %10s  %-14s %-10s ", row.model.name.c_str(),
                  HumanBytes(row.model.bytes).c_str(), row.type.c_str(), state.c_str());
    text += line + row.note;
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<CachedModel> ListCache(const std::string& cache) {
  std::vector<CachedModel> models;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cache, error)) {
    const std::string folder = entry.path().filename();
    if (!folder.starts_with(kPrefix)) continue;
    const std::string name = NameOf(folder);
    if (!hub::IsRepoId(name)) continue;
    const hub::HubCache place(cache, name);
    models.push_back({name, SnapshotOf(place), BytesIn(place.folder() / "blobs")});
  }
  std::ranges::sort(models, {}, &CachedModel::name);
  return models;
}

options::ProgramOptions ModelsOptions() {
  return options::ProgramWith("penstock models", "The models in the Hugging Face cache.",
                              kModelRows);
}

int Models(const Words& words) {
  const auto line = ReadWords(ModelsOptions(), words);
  if (line.exit_code) return *line.exit_code;
  const options::Values values(options::ProgramFor(options::kLauncher));
  std::string cache = line.values.GetString("cache");
  if (cache.empty()) cache = OfflineSettings(values).cache;
  const auto machine = launcher::FindMachine();
  std::vector<ModelRow> rows;
  if (machine.ok()) {
    for (const CachedModel& model : ListCache(cache)) rows.push_back(Look(model, values, *machine));
  }
  const bool json = line.values.GetBool("json");
  std::fputs((json ? JsonRows(rows) : TableRows(rows)).c_str(), stdout);
  if (rows.empty() && !json) std::fprintf(stderr, "no model in %s\n", cache.c_str());
  return kExitOk;
}

}  // namespace penstock::cli
