#include "tools/make-model/options.h"

#include "common/options/values.h"
#include "common/status.h"

namespace penstock::make_model {
namespace {

using options::OptionSpec;
using options::Type;

std::optional<std::string> CanonicalDType(std::string_view text) {
  const std::optional<DType> dtype = ParseDType(text);
  if (!dtype.has_value()) return std::nullopt;
  return std::string(DTypeName(*dtype));
}

constexpr OptionSpec kRows[] = {
    {.name = "output",
     .type = Type::kPath,
     .required = options::kTool,
     .components = options::kTool,
     .help = "Folder to write; made if absent."},
    {.name = "shape",
     .type = Type::kEnum,
     .default_text = "tiny",
     .choices = "tiny|135m|0.5b|1.1b|8b",
     .components = options::kTool,
     .help = "Sizes of SmolLM-135M, Qwen2.5-0.5B, TinyLlama-1.1B or Llama-3-8B; tiny is for "
             "tests."},
    {.name = "type",
     .type = Type::kEnum,
     .default_text = "llama",
     .choices = "llama|qwen2|qwen3|mistral|gpt_neox",
     .components = options::kTool,
     .help = "Model type: which tensors there are."},
    {.name = "dtype",
     .type = Type::kEnum,
     .default_text = "bfloat16",
     .choices = "float32|bfloat16|float16",
     .canonical = CanonicalDType,
     .components = options::kTool,
     .help = "Type of the stored weights."},
    {.name = "seed",
     .type = Type::kInt,
     .default_text = "0",
     .min = 0,
     .components = options::kTool,
     .help = "The same seed gives the same bytes."},
    {.name = "tokenizer",
     .type = Type::kPath,
     .components = options::kTool,
     .help = "Folder whose tokenizer is copied. Unset: a byte-level one is made."},
    {.name = "max-shard-size",
     .type = Type::kBytes,
     .default_text = "0",
     .min = 0,
     .components = options::kTool,
     .help = "Maximum size of a safetensors file; several files get an index. 0: one file."},
    {.name = "max-position",
     .type = Type::kInt,
     .default_text = "0",
     .min = 0,
     .max = 1e8,
     .components = options::kTool,
     .help = "Context length. 0: the shape's own."},
    {.name = "sliding-window",
     .type = Type::kInt,
     .default_text = "0",
     .min = 0,
     .max = 1e8,
     .components = options::kTool,
     .help = "Attention window in all layers (not llama, gpt_neox). 0: none."},
    {.name = "gguf",
     .type = Type::kPath,
     .components = options::kTool,
     .help =
         "GGUF file to write the same weights to, for llama.cpp (token ids only). Unset: none."},
    {.name = "overwrite",
     .type = Type::kBool,
     .default_text = "false",
     .flag_text = "true",
     .components = options::kTool,
     .help = "Replaces a model that the folder holds."},
};

Config ToConfig(const options::Values& values) {
  Config config;
  config.output = values.GetString("output");
  config.shape = values.GetString("shape");
  config.type = values.GetString("type");
  config.dtype = ParseDType(values.GetString("dtype")).value_or(DType::kBFloat16);
  config.seed = static_cast<std::uint64_t>(values.GetInt("seed"));
  config.tokenizer = values.GetString("tokenizer");
  config.max_file_bytes = static_cast<std::uint64_t>(values.GetBytes("max-shard-size"));
  config.max_position = static_cast<std::uint32_t>(values.GetInt("max-position"));
  config.sliding_window = static_cast<std::uint32_t>(values.GetInt("sliding-window"));
  config.gguf = values.GetString("gguf");
  config.overwrite = values.GetBool("overwrite");
  return config;
}

}  // namespace

CommandLine ReadCommandLine(int argc, char** argv) {
  const auto program = options::ProgramWith(
      "penstock-make-model", "Writes a checkpoint with random weights of a real model's shape.",
      kRows);
  const options::CommandLine line = options::ReadCommandLine(program, argc, argv);
  if (line.exit_code.has_value()) return {absl::CancelledError(), *line.exit_code};
  return {ToConfig(line.values), 0};
}

}  // namespace penstock::make_model
