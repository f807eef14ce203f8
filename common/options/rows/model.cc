#include "common/dtype.h"
#include "common/options/rows/rows.h"

namespace penstock::options {
namespace {

std::optional<std::string> CanonicalDType(std::string_view text) {
  if (text == "auto") return "auto";
  std::optional<DType> dtype = ParseDType(text);
  if (!dtype.has_value()) return std::nullopt;
  return std::string(DTypeName(*dtype));
}

constexpr OptionSpec kRows[] = {
    OptionSpec("model-id", Type::kModel, "",
               "Model to serve: a folder with config.json, tokenizer.json and safetensors files, "
               "or a Hugging Face model id (org/name).",
               {.required = kLauncher | kRouter | kShard,
                .components = kLauncher | kRouter | kShard | kSimshard,
                .aliases = "tokenizer-name"}),
    OptionSpec("revision", Type::kString, "main", "Branch, tag or commit of a fetched model."),
    OptionSpec("dtype", OneOf("auto|float32|bfloat16|float16", CanonicalDType), "auto",
               "Type of weights and arithmetic; auto takes the type of the checkpoint.",
               {.components = kLauncher | kShard}),
    OptionSpec(
        "quantize", Type::kString, "",
        "int8 stores each weight in one byte, with a scale per output; answers change a little. "
        "Unset: weights have the type of --dtype.",
        {.components = kLauncher | kShard,
         .refusal =
             "quantized checkpoints are not read; int8 quantizes the weights while they load",
         .harmless = "none|int8"}),
    OptionSpec("served-model-name", Type::kString, "",
               "Name that clients use for the model; unset: the text of --model-id."),
    OptionSpec("download-only", Type::kBool, "false", "Fetch the model, print its folder and exit.",
               {.advanced = true, .components = kLauncher}),
    OptionSpec("huggingface-hub-cache", Type::kPath, "",
               "Folder of fetched models; unset: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, "
               "$HF_HOME/hub, else ~/.cache/huggingface/hub.",
               {.advanced = true, .components = kLauncher}),
    OptionSpec("tokenizer-config-path", Type::kPath, "",
               "File like tokenizer_config.json whose chat template replaces the model's.",
               {.advanced = true}),
    OptionSpec(
        "hub-model-id", Type::kString, "",
        "Model id to show when --model-id is a folder of the hub cache; the launcher sets it.",
        {.advanced = true}),
    OptionSpec("hub-commit", Type::kString, "",
               "Commit to show as model_sha; the launcher sets it.", {.advanced = true}),
};

}  // namespace

std::span<const OptionSpec> ModelRows() { return kRows; }

}  // namespace penstock::options
