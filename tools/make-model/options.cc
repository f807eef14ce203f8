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
    OptionSpec("output", Type::kPath, "", "Folder to write; made if absent.",
               {.required = options::kTool}),
    OptionSpec(
        "shape", options::OneOf("tiny|135m|0.5b|1.1b|8b"), "tiny",
        "Sizes of SmolLM-135M, Qwen2.5-0.5B, TinyLlama-1.1B or Llama-3-8B; tiny is for tests."),
    OptionSpec("type", options::OneOf("llama|qwen2|qwen3|mistral|gpt_neox"), "llama",
               "Model type: which tensors there are."),
    OptionSpec("dtype", options::OneOf("float32|bfloat16|float16", CanonicalDType), "bfloat16",
               "Type of the stored weights."),
    OptionSpec("seed", options::Int(0), "0", "The same seed gives the same bytes."),
    OptionSpec("tokenizer", Type::kPath, "",
               "Folder whose tokenizer is copied. Unset: a byte-level one is made."),
    OptionSpec("max-shard-size", options::Bytes(0), "0",
               "Maximum size of a safetensors file; several files get an index. 0: one file."),
    OptionSpec("max-position", options::Int(0, 1e8), "0", "Context length. 0: the shape's own."),
    OptionSpec("sliding-window", options::Int(0, 1e8), "0",
               "Attention window in all layers (not llama, gpt_neox). 0: none."),
    OptionSpec(
        "gguf", Type::kPath, "",
        "GGUF file to write the same weights to, for llama.cpp (token ids only). Unset: none."),
    OptionSpec("overwrite", Type::kBool, "false", "Replaces a model that the folder holds."),
};

ModelOptions ToOptions(const options::Values& values) {
  ModelOptions config;
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
  return {ToOptions(line.values), 0};
}

}  // namespace penstock::make_model
