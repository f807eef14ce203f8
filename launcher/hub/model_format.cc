#include "launcher/hub/model_format.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "common/edit_distance.h"
#include "launcher/hub/hub_cache.h"

namespace penstock::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kInstead =
    ", which is not read; give the same model in safetensors, as a folder with config.json, "
    "tokenizer.json and .safetensors files or as a model id";

struct Format {
  std::string_view ending;  // of a file name
  std::string_view name;
};

constexpr Format kFormats[] = {
    {".gguf", "GGUF"},   {".onnx", "ONNX"},     {".bin", "PyTorch"},  {".pt", "PyTorch"},
    {".pth", "PyTorch"}, {".h5", "TensorFlow"}, {".msgpack", "Flax"},
};

// The folder beside `path` whose name is nearest; empty if none is near.
std::string NearestFolder(const fs::path& path) {
  const std::string name = path.filename().string();
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
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

bool NamesAFile(std::string_view model) {
  return std::ranges::any_of(kFormats,
                             [&](const Format& format) { return model.ends_with(format.ending); });
}

}  // namespace

std::string OtherFormat(const std::set<std::string>& files) {
  constexpr const char* kAdapter = "adapter_config.json";
  if (files.contains(kAdapter) && !files.contains("config.json")) {
    return std::string("it is an adapter (") + kAdapter +
           "), which is not loaded; merge it into its base model and give that folder";
  }
  for (const std::string& name : files) {
    if (name.ends_with(".safetensors")) return "";
  }
  for (const Format& format : kFormats) {
    for (const std::string& name : files) {
      if (!name.ends_with(format.ending)) continue;
      return "its format is " + std::string(format.name) + " (" + name + ")" +
             std::string(kInstead);
    }
  }
  return "";
}

std::set<std::string> FilesOf(const std::string& path) {
  std::set<std::string> files;
  std::error_code error;
  if (!fs::is_directory(path, error)) return {fs::path(path).filename().string()};
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    files.insert(entry.path().filename().string());
  }
  return files;
}

std::optional<std::string> MissingFolder(const std::string& model) {
  fs::path path(model);
  if (!path.has_filename()) path = path.parent_path();  // "demo/model/"
  std::error_code error;
  const bool has_parts = model.find('/') != model.npos;
  const bool begins_here = has_parts && fs::exists(*path.begin(), error);
  const bool is_id = IsRepoId(model);
  if (is_id && !begins_here && !NamesAFile(model)) return std::nullopt;
  std::string text = "there is no such folder";
  if (!is_id && model.find_first_of("/\\") == model.npos) text += ", and it is no model id";
  const std::string near = NearestFolder(path);
  if (!near.empty()) text += "; did you mean " + near + "?";
  if (is_id && begins_here) {
    text += (near.empty() ? "; it" : " It") +
            (" is not looked up at the hub, because " + path.begin()->string() + " exists here");
  }
  return text;
}

}  // namespace penstock::hub
