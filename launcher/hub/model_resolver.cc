#include "launcher/hub/model_resolver.h"

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string_view>
#include <vector>

#include "common/model_format.h"
#include "common/status.h"
#include "launcher/hub/hub_cache.h"
#include "launcher/hub/hub_error.h"
#include "launcher/hub/missing_folder.h"

namespace penstock::hub {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::string_view kSingle = "model.safetensors";
constexpr std::size_t kMostInfoBytes = 16u << 20;

constexpr std::array<std::string_view, 12> kSmallFiles = {"config.json",
                                                          "generation_config.json",
                                                          "tokenizer.json",
                                                          "tokenizer_config.json",
                                                          "special_tokens_map.json",
                                                          "added_tokens.json",
                                                          "chat_template.jinja",
                                                          "chat_template.json",
                                                          "tokenizer.model",
                                                          "vocab.json",
                                                          "merges.txt",
                                                          kIndex};

struct RepoInfo {
  std::string commit;
  std::set<std::string> files;
};

absl::Status ModelError(const std::string& repo, const std::string& what) {
  return absl::FailedPreconditionError("--model-id " + repo + ": " + what);
}

bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The files that the index names; an error if it cannot be understood.
absl::StatusOr<std::vector<std::string>> FilesOfIndex(const std::string& repo,
                                                      const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  boost::system::error_code error;
  const json::value index = json::parse(text.str(), error);
  const json::value* map =
      index.is_object() ? index.as_object().if_contains("weight_map") : nullptr;
  if (error || map == nullptr || !map->is_object()) {
    return ModelError(repo, std::string(kIndex) + " has no weight_map");
  }
  std::set<std::string> names;
  for (const auto& [tensor, name] : map->as_object()) {
    if (!name.is_string() || !IsSafeFileName(name.as_string().c_str())) {
      return ModelError(repo, std::string(kIndex) + " names no file for " + std::string(tensor));
    }
    names.emplace(name.as_string().c_str());
  }
  return std::vector<std::string>(names.begin(), names.end());
}

bool HasWeights(const std::string& repo, const fs::path& snapshot) {
  if (!Exists(snapshot / kIndex)) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(snapshot, error)) {
      if (entry.path().extension() == ".safetensors" && Exists(entry.path())) return true;
    }
    return false;
  }
  const auto names = FilesOfIndex(repo, snapshot / kIndex);
  return names.ok() && std::all_of(names->begin(), names->end(), [&](const std::string& name) {
           return Exists(snapshot / name);
         });
}

bool IsWhole(const std::string& repo, const fs::path& snapshot, Need need) {
  if (!Exists(snapshot / "tokenizer.json")) return false;
  if (need == Need::kTokenizer) return true;
  return Exists(snapshot / "config.json") && HasWeights(repo, snapshot);
}

absl::StatusOr<RepoInfo> ParseInfo(const std::string& repo, const std::string& text) {
  boost::system::error_code error;
  const json::value answer = json::parse(text, error);
  const json::object* object = answer.if_object();
  const json::value* sha = object != nullptr ? object->if_contains("sha") : nullptr;
  const json::value* siblings = object != nullptr ? object->if_contains("siblings") : nullptr;
  if (error || sha == nullptr || !sha->is_string() || !IsCommit(sha->as_string().c_str()) ||
      siblings == nullptr || !siblings->is_array()) {
    return ModelError(repo, "the hub's answer is not the description of a model");
  }
  RepoInfo info;
  info.commit = sha->as_string().c_str();
  for (const json::value& sibling : siblings->as_array()) {
    const json::object* entry = sibling.if_object();
    const json::value* name = entry != nullptr ? entry->if_contains("rfilename") : nullptr;
    if (name != nullptr && name->is_string() && IsSafeFileName(name->as_string().c_str())) {
      info.files.emplace(name->as_string().c_str());
    }
  }
  return info;
}

// Asks the hub for a revision. If `patient`, it asks a busy or failing hub again, like a download.
// A hub that cannot be reached is asked once.
class InfoRequest {
 public:
  InfoRequest(const HubSettings& settings, const std::string& repo, bool patient)
      : settings_(settings),
        repo_(repo),
        patient_(patient),
        url_(settings.endpoint + "/api/models/" + repo + "/revision/" + settings.revision) {}

  absl::StatusOr<RepoInfo> Ask() {
    Start(std::chrono::milliseconds(0));
    const absl::Status run = transfers_.Run();
    if (!run.ok()) return run;
    return ParseInfo(repo_, text_);
  }

 private:
  void Start(std::chrono::milliseconds delay) {
    text_.clear();
    HttpRequest request;
    request.url = url_;
    request.token = settings_.token;
    request.body = [this](long, std::string_view bytes) {
      text_ += bytes;
      return text_.size() <= kMostInfoBytes;
    };
    request.done = [this](const HttpResponse& response) { OnAnswer(response); };
    transfers_.Start(std::move(request), delay);
  }

  void OnAnswer(const HttpResponse& response) {
    if (text_.size() > kMostInfoBytes) {
      return transfers_.Stop(ModelError(repo_,
                                        "the hub's answer is longer than 16 MiB, so not the "
                                        "description of a model"));
    }
    if (IsTransient(response)) {
      const bool again = patient_ && response.status.ok();
      const auto delay = again ? RetryDelay(url_, ++failures_, response) : std::nullopt;
      if (delay) return Start(*delay);
    } else if (response.code < 400) {
      return;
    }
    transfers_.Stop(HubError(settings_, repo_, "", response));
  }

  const HubSettings& settings_;
  const std::string& repo_;
  const bool patient_;
  const std::string url_;
  HttpTransfers transfers_;
  std::string text_;
  int failures_ = 0;
};

std::vector<std::string> CodeFiles(const RepoInfo& info) {
  std::vector<std::string> names;
  for (const std::string& name : info.files) {
    if (name.ends_with(".py") && name.find('/') == std::string::npos) names.push_back(name);
  }
  return names;
}

absl::StatusOr<std::vector<std::string>> WeightFiles(const std::string& repo, const RepoInfo& info,
                                                     const fs::path& snapshot) {
  if (info.files.contains(std::string(kIndex))) return FilesOfIndex(repo, snapshot / kIndex);
  if (info.files.contains(std::string(kSingle))) {
    return std::vector<std::string>{std::string(kSingle)};
  }
  std::vector<std::string> names;
  for (const std::string& name : info.files) {
    if (name.ends_with(".safetensors") && name.find('/') == std::string::npos) {
      names.push_back(name);
    }
  }
  if (!names.empty()) return names;
  return ModelError(repo,
                    "has no .safetensors files; other formats are not read. Convert it, or "
                    "take a --revision that has them");
}

absl::Status FetchSnapshot(const HubSettings& settings, HubCache& cache, const std::string& repo,
                           const RepoInfo& info, Need need, const Progress& progress) {
  const std::string other = need == Need::kWeights ? OtherFormat(info.files) : "";
  if (!other.empty()) return ModelError(repo, other);
  FileFetcher fetcher(settings, cache, repo, info.commit, progress);
  std::vector<std::string> small;
  for (const std::string_view name : kSmallFiles) {
    if (info.files.contains(std::string(name))) small.emplace_back(name);
  }
  if (settings.code) std::ranges::copy(CodeFiles(info), std::back_inserter(small));
  PENSTOCK_RETURN_IF_ERROR(fetcher.Fetch(small));
  if (!Exists(cache.Snapshot(info.commit) / "tokenizer.json")) {
    return ModelError(repo, "has no tokenizer.json, which is the only tokenizer format read");
  }
  if (need == Need::kTokenizer) return absl::OkStatus();
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<std::string> weights,
                            WeightFiles(repo, info, cache.Snapshot(info.commit)));
  return fetcher.Fetch(weights);
}

absl::StatusOr<ResolvedModel> FromHub(const HubSettings& settings, HubCache& cache,
                                      const std::string& repo, Need need, const RepoInfo& info,
                                      const Progress& progress) {
  PENSTOCK_ASSIGN_OR_RETURN(const launcher::UniqueFd lock, cache.Lock());
  const fs::path snapshot = cache.Snapshot(info.commit);
  const auto exists = [&snapshot](const std::string& name) { return Exists(snapshot / name); };
  const bool whole = IsWhole(repo, snapshot, need) &&
                     (!settings.code || std::ranges::all_of(CodeFiles(info), exists));
  if (!whole) {
    PENSTOCK_RETURN_IF_ERROR(FetchSnapshot(settings, cache, repo, info, need, progress));
  }
  PENSTOCK_RETURN_IF_ERROR(cache.WriteRef(settings.revision, info.commit));
  return ResolvedModel{cache.Snapshot(info.commit), info.commit, ""};
}

}  // namespace

absl::StatusOr<ResolvedModel> ResolveModel(const HubSettings& settings, const std::string& model,
                                           Need need, const Progress& progress) {
  if (Exists(model)) return ResolvedModel{model, "", ""};
  const std::optional<std::string> missing = MissingFolder(model);
  if (missing.has_value() && !IsRepoId(model)) {
    return absl::NotFoundError("--model-id " + model + ": " + *missing);
  }
  if (!IsSafeFileName(settings.revision)) {
    return absl::InvalidArgumentError("--revision " + settings.revision +
                                      ": must be a branch, a tag or a commit");
  }
  HubCache cache(settings.cache, model);
  const auto commit = cache.CommitOf(settings.revision);
  const bool whole = commit && IsWhole(model, cache.Snapshot(*commit), need);
  if (whole && (settings.offline || IsCommit(settings.revision))) {
    return ResolvedModel{cache.Snapshot(*commit), *commit, ""};
  }
  if (!whole && missing.has_value()) {
    return absl::NotFoundError("--model-id " + model + ": " + *missing);
  }
  if (settings.offline) {
    return absl::NotFoundError("--model-id " + model + ": revision " + settings.revision +
                               " is not complete in " + cache.folder().string() +
                               ", and HF_HUB_OFFLINE forbids fetching it");
  }
  if (!IsHttpUrl(settings.endpoint)) {
    return absl::InvalidArgumentError("HF_ENDPOINT " + settings.endpoint +
                                      ": must be a URL of the form https://HOST or http://HOST");
  }
  const absl::StatusOr<RepoInfo> info = InfoRequest(settings, model, !whole).Ask();
  if (info.ok()) return FromHub(settings, cache, model, need, *info, progress);
  if (!whole || !absl::IsUnavailable(info.status())) return info.status();
  return ResolvedModel{cache.Snapshot(*commit), *commit,
                       Message(info.status()) + "; using the copy in the cache, commit " + *commit};
}

}  // namespace penstock::hub
