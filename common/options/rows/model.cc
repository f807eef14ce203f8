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
    {.name = "model-id",
     .type = Type::kModel,
     .required = kLauncher | kRouter | kShard,
     .components = kLauncher | kRouter | kShard | kSimshard,
     .aliases = "tokenizer-name",
     .help = "Model to serve: a folder with config.json, tokenizer.json and safetensors "
             "files, or a Hugging Face model id (org/name)."},
    {.name = "revision",
     .default_text = "main",
     .components = kLauncher | kRouter,
     .help = "Branch, tag or commit of a fetched model."},
    {.name = "dtype",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|float32|bfloat16|float16",
     .canonical = CanonicalDType,
     .components = kLauncher | kShard,
     .help = "Type of weights and arithmetic; auto takes the type of the checkpoint."},
    {.name = "quantize",
     .components = kLauncher | kShard,
     .refusal = "checkpoints that are quantized already are not read; int8 quantizes the model's "
                "own weights while they are loaded, --dtype bfloat16 halves float32 ones",
     .harmless = "none|int8",
     .help = "int8 stores each weight in one byte and a scale per output, which changes "
             "answers a little."},
    {.name = "served-model-name",
     .components = kLauncher | kRouter,
     .help = "Name that clients use for the model; unset: the text of --model-id."},
    {.name = "download-only",
     .type = Type::kBool,
     .default_text = "false",
     .advanced = true,
     .components = kLauncher,
     .help = "Fetch the model, print its folder and exit."},
    {.name = "huggingface-hub-cache",
     .type = Type::kPath,
     .advanced = true,
     .components = kLauncher,
     .help = "Folder of fetched models; unset: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, "
             "$HF_HOME/hub, else ~/.cache/huggingface/hub."},
    {.name = "tokenizer-config-path",
     .type = Type::kPath,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "tokenizer_config.json whose chat template replaces the model's."},
    {.name = "hub-model-id",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Model id to show when --model-id is a folder of the hub cache; the launcher "
             "sets it."},
    {.name = "hub-commit",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Commit to show as model_sha; the launcher sets it."},
};

}  // namespace

std::span<const OptionSpec> ModelRows() { return kRows; }

}  // namespace penstock::options
