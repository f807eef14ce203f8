#include "common/model_format.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace penstock {
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

// An adapter has its own config file, and no weights of a model beside it.
bool IsAdapter(const std::set<std::string>& files) {
  const bool weights =
      files.contains("model.safetensors") || files.contains("model.safetensors.index.json");
  return files.contains("adapter_config.json") && !(weights && files.contains("config.json"));
}

}  // namespace

std::string OtherFormat(const std::set<std::string>& files) {
  if (IsAdapter(files)) {
    return "it is an adapter (adapter_config.json), which is not loaded; merge it into its base "
           "model and give that folder";
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

bool HasOtherFormat(std::string_view file) {
  return std::ranges::any_of(kFormats,
                             [&](const Format& format) { return file.ends_with(format.ending); });
}

}  // namespace penstock
