#include "launcher/hub/missing_folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "common/edit_distance.h"
#include "common/model_format.h"
#include "launcher/hub/hub_cache.h"

namespace penstock::hub {
namespace {

namespace fs = std::filesystem;

// The folder beside `path` whose name is nearest; empty if none is near.
std::string NearestFolder(const fs::path& path) {
  const std::string name = path.filename().string();
  std::string best;
  // Fewer than half of the letters: /nope is not /home.
  if (name.empty()) return "";
  std::size_t best_distance =
      std::min(std::max<std::size_t>(2, name.size() / 3), (name.size() - 1) / 2) + 1;
  std::error_code error;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    if (!entry.is_directory(error)) continue;
    const std::string other = entry.path().filename().string();
    const std::size_t distance = EditDistance(name, other);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = (path.parent_path() / other).string();
  }
  return best;
}

}  // namespace

std::optional<std::string> MissingFolder(const std::string& model) {
  if (model.starts_with("https://") || model.starts_with("http://")) {
    return "is an address; give a model id (org/name) or a folder";
  }
  fs::path path(model);
  if (!path.has_filename()) path = path.parent_path();  // "demo/model/"
  std::error_code error;
  const bool has_parts = model.find('/') != model.npos;
  const bool begins_here = has_parts && fs::exists(*path.begin(), error);
  const bool is_id = IsRepoId(model);
  if (is_id && !begins_here && !HasOtherFormat(model)) return std::nullopt;
  std::string text = "there is no such folder";
  if (!is_id && model.find_first_of("/\\") == model.npos) text += ", and it is no model id";
  const std::string near = NearestFolder(path);
  if (!near.empty()) text += "; did you mean " + near + "?";
  if (is_id && begins_here) {
    text += " (" + path.begin()->string() + " exists here, so the hub is not asked)";
  }
  return text;
}

}  // namespace penstock::hub
