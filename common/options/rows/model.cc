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

// The names of docs/tools.md. The formats themselves are in router/answer.
constexpr std::string_view kToolFormats =
    "auto|none|deepseek_v3|deepseek_v31|deepseek_v32|functiongemma|gemma3|gemma4|glm4|glm45|gpt_"
    "oss|"
    "granite|hermes|kimi_k2|llama3_json|llama4_pythonic|minimax_m1|minimax_m2|mistral_v3|"
    "mistral_v11|phi4|qwen3_coder|seed_oss|think";

constexpr OptionSpec kModelRows[] = {
    OptionSpec("model-id", Type::kModel, "",
               "Model to serve: a folder with config.json, tokenizer.json and safetensors files, "
               "or a Hugging Face model id (org/name).",
               {.required = kLauncher | kRouter | kShard,
                .components = kLauncher | kRouter | kShard | kSimshard,
                .aliases = "tokenizer-name"}),
    OptionSpec("engine", OneOf("penstock|transformers"), "penstock",
               "What computes the model: penstock, for the types of docs/models.md, or the Python "
               "package transformers, slower, for every other type, on one rank of a CPU.",
               {.components = kLauncher | kRouter | kShard}),
    OptionSpec("python", Type::kPath, "",
               "Python interpreter of --engine transformers; unset: that of $VIRTUAL_ENV, or else "
               "python3 in PATH.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec("trust-remote-code", Type::kBool, "false",
               "Let --engine transformers run code that comes with the model.",
               {.components = kLauncher | kShard}),
    OptionSpec("revision", Type::kString, "main", "Branch, tag or commit of a fetched model."),
    OptionSpec("dtype", OneOf("auto|float32|bfloat16|float16", CanonicalDType), "auto",
               "Type of weights and arithmetic; auto takes the type of the checkpoint.",
               {.components = kLauncher | kShard}),
    OptionSpec(
        "quantize", Type::kString, "",
        "Form of the weights in memory: int8 and, on GPUs, fp8 take one byte and change answers a "
        "little; int4, on CPUs, takes half a byte and changes them more; unset: the type of "
        "--dtype.",
        {.components = kLauncher | kShard,
         .refusal = "a quantized checkpoint needs no option; int8, int4 on a CPU and fp8 on a GPU "
                    "quantize the weights while they load",
         .harmless = "none|int8|int4|fp8"}),
    OptionSpec("task", OneOf("auto|generate|embed|classify"), "auto",
               "What the model gives: text, vectors of texts, or classes. auto: by the class in "
               "config.json, and embed for a folder of sentence-transformers.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec("pooling", OneOf("auto|cls|mean|last|max"), "auto",
               "How the rows of a text become its vector. auto: what the model's folder says, or "
               "else mean for encoders and last for decoders.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec(
        "lora", Type::kList, "",
        "LoRA adapters to load beside the model, which requests choose by name: NAME=FOLDER, "
        "a folder that PEFT saved.",
        {.components = kLauncher | kShard, .aliases = "lora-adapters"}),
    OptionSpec(
        "served-model-name", Type::kString, "",
        "Name that clients use for the model; unset: the text of --model-id, or the folder's own "
        "name if that is `.` or `..`."),
    OptionSpec("download-only", Type::kBool, "false", "Fetch the model, print its folder and exit.",
               {.advanced = true, .components = kLauncher}),
    OptionSpec("huggingface-hub-cache", Type::kPath, "",
               "Folder of fetched models; unset: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, "
               "$HF_HOME/hub, else ~/.cache/huggingface/hub.",
               {.advanced = true, .components = kLauncher}),
    OptionSpec("tokenizer-config-path", Type::kPath, "",
               "File like tokenizer_config.json whose chat template replaces the model's.",
               {.advanced = true}),
    OptionSpec("tool-format", OneOf(kToolFormats), "auto",
               "How the model writes tool calls and reasoning; auto reads it from the chat "
               "template, none leaves all as text.",
               {.advanced = true}),
    OptionSpec(
        "hub-model-id", Type::kString, "",
        "Model id to show when --model-id is a folder of the hub cache; the launcher sets it.",
        {.advanced = true, .set_by_launcher = true}),
    OptionSpec("hub-commit", Type::kString, "",
               "Commit to show as model_sha; the launcher sets it.",
               {.advanced = true, .set_by_launcher = true}),
};

}  // namespace

std::span<const OptionSpec> ModelRows() { return kModelRows; }

}  // namespace penstock::options
