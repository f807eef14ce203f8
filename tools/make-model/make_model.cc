#include "tools/make-model/make_model.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "common/bad_option.h"
#include "common/json_text.h"
#include "common/status.h"
#include "shard/weights/safetensors_writer.h"
#include "tools/make-model/gguf.h"
#include "tools/make-model/random_values.h"
#include "tools/make-model/shape.h"
#include "tools/make-model/tokenizer_files.h"

namespace penstock::make_model {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::size_t kChunkBytes = 1 << 20;

struct File {
  std::string name;
  std::vector<TensorRecipe> tensors;
};

std::string FileName(std::size_t index, std::size_t count) {
  if (count == 1) return "model.safetensors";
  char name[64];
  std::snprintf(name, sizeof(name), "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return name;
}

// Puts whole tensors into files, in order. A file ends before it would exceed the limit.
std::vector<File> SplitIntoFiles(std::vector<TensorRecipe> recipes, std::uint64_t max_file_bytes) {
  std::vector<File> files(1);
  std::uint64_t bytes = 0;
  for (TensorRecipe& recipe : recipes) {
    const std::uint64_t size = recipe.tensor.Bytes();
    if (max_file_bytes > 0 && bytes > 0 && bytes + size > max_file_bytes) {
      files.emplace_back();
      bytes = 0;
    }
    files.back().tensors.push_back(std::move(recipe));
    bytes += size;
  }
  for (std::size_t i = 0; i < files.size(); ++i) files[i].name = FileName(i, files.size());
  return files;
}

class Writer {
 public:
  Writer(const ModelOptions& config, const Progress& progress)
      : config_(config), progress_(progress) {}

  absl::StatusOr<Result> Write(const std::vector<File>& files) {
    for (const File& file : files) {
      for (const TensorRecipe& recipe : file.tensors) {
        result_.bytes += recipe.tensor.Bytes();
        result_.parameters += recipe.tensor.Bytes() / DTypeBytes(config_.dtype);
      }
    }
    for (const File& file : files) PENSTOCK_RETURN_IF_ERROR(WriteFile(file));
    result_.files = static_cast<std::uint32_t>(files.size());
    if (files.size() > 1) PENSTOCK_RETURN_IF_ERROR(WriteIndex(files));
    return result_;
  }

 private:
  absl::Status WriteFile(const File& file) {
    std::vector<shard::TensorSpec> table;
    for (const TensorRecipe& recipe : file.tensors) table.push_back(recipe.tensor);
    shard::SafetensorsWriter writer(config_.output + "/" + file.name, table);
    std::vector<std::byte> chunk(kChunkBytes);
    for (const TensorRecipe& recipe : file.tensors) {
      RandomValues values(config_.seed, recipe.tensor.name, recipe.mean, recipe.scale,
                          recipe.tensor.dtype);
      for (std::uint64_t left = recipe.tensor.Bytes(); left > 0;) {
        const std::span<std::byte> part(chunk.data(), std::min<std::uint64_t>(left, kChunkBytes));
        values.Fill(part);
        writer.Append(part);
        left -= part.size();
        done_ += part.size();
        if (progress_) progress_(done_, result_.bytes);
      }
    }
    return writer.Finish();
  }

  absl::Status WriteIndex(const std::vector<File>& files) {
    json::object map;
    for (const File& file : files) {
      for (const TensorRecipe& recipe : file.tensors) map[recipe.tensor.name] = file.name;
    }
    const json::value index = {{"metadata", {{"total_size", result_.bytes}}},
                               {"weight_map", std::move(map)}};
    return WriteTextFile(config_.output + "/model.safetensors.index.json", json::serialize(index));
  }

  const ModelOptions& config_;
  const Progress& progress_;
  Result result_;
  std::uint64_t done_ = 0;
};

absl::Status MakeFolder(const ModelOptions& config) {
  std::error_code ec;
  fs::create_directories(config.output, ec);
  if (ec) return absl::UnavailableError(config.output + ": cannot be created: " + ec.message());
  if (!config.overwrite && fs::exists(fs::path(config.output) / "config.json", ec)) {
    return absl::AlreadyExistsError(config.output +
                                    ": already holds a model; --overwrite replaces it");
  }
  // Files of an earlier model must not be read as part of this one.
  for (const char* name : {"config.json", "model.safetensors.index.json"}) {
    fs::remove(fs::path(config.output) / name, ec);
  }
  return absl::OkStatus();
}

// Writes the tokenizer's files. The shape's vocabulary becomes at least the tokenizer's; that of
// `tiny` becomes equal to it.
absl::StatusOr<TokenizerInfo> PlaceTokenizer(const ModelOptions& config, Shape& shape) {
  if (config.tokenizer.empty()) return WriteByteTokenizer(config.output, shape.vocabulary);
  PENSTOCK_ASSIGN_OR_RETURN(const TokenizerInfo info, ReadTokenizer(config.tokenizer));
  shape.vocabulary = shape.name == "tiny" ? info.size : std::max(shape.vocabulary, info.size);
  PENSTOCK_RETURN_IF_ERROR(CopyTokenizer(config.tokenizer, config.output));
  return info;
}

}  // namespace

absl::StatusOr<Result> MakeModel(const ModelOptions& config, const Progress& progress) {
  Shape shape = ShapeNamed(config.shape);
  const ModelKind& kind = KindNamed(config.type);
  if (config.max_position != 0) shape.max_position = config.max_position;
  if (config.sliding_window != 0 && (kind.type == "llama" || IsGptNeox(kind))) {
    return BadOption("sliding-window", std::to_string(config.sliding_window),
                     "unset for " + std::string(kind.type));
  }
  if (!config.gguf.empty() && IsGptNeox(kind)) {
    return BadOption("gguf", config.gguf, "unset for gpt_neox");
  }
  if (config.sliding_window != 0 && !config.gguf.empty()) {
    return BadOption("gguf", config.gguf, "unset with a sliding window");
  }
  PENSTOCK_RETURN_IF_ERROR(MakeFolder(config));
  PENSTOCK_ASSIGN_OR_RETURN(const TokenizerInfo tokenizer, PlaceTokenizer(config, shape));
  const std::vector<TensorRecipe> recipes = Recipes(shape, kind, config.dtype);
  const std::vector<File> files = SplitIntoFiles(recipes, config.max_file_bytes);
  PENSTOCK_ASSIGN_OR_RETURN(const Result result, Writer(config, progress).Write(files));
  if (!config.gguf.empty()) {
    PENSTOCK_RETURN_IF_ERROR(
        WriteGguf({shape, kind, config.dtype, config.seed}, recipes, config.gguf));
  }
  json::object generation{{"do_sample", false}};
  if (tokenizer.bos >= 0) generation["bos_token_id"] = tokenizer.bos;
  if (!tokenizer.eos.empty()) {
    generation["eos_token_id"] = json::array(tokenizer.eos.begin(), tokenizer.eos.end());
  }
  PENSTOCK_RETURN_IF_ERROR(
      WriteTextFile(config.output + "/generation_config.json", JsonText(generation)));
  // Written last: a folder without config.json is not a model, so an interrupted run leaves none.
  PENSTOCK_RETURN_IF_ERROR(WriteTextFile(
      config.output + "/config.json",
      ConfigJson(shape, kind, config.dtype, config.sliding_window, tokenizer.bos, tokenizer.eos)));
  return result;
}

}  // namespace penstock::make_model
