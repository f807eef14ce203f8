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
     .help = "Folder of the model: config.json, tokenizer.json and safetensors files. For the "
             "launcher also a Hugging Face model id (org/name), which is taken from the cache or "
             "fetched (HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE are understood)."},
    {.name = "revision",
     .default_text = "main",
     .components = kLauncher | kRouter,
     .help = "Branch, tag or commit of a model that is fetched. Without effect, and "
             "with a warning, for a local folder."},
    {.name = "huggingface-hub-cache",
     .type = Type::kPath,
     .components = kLauncher,
     .help = "Folder of fetched models. Unset: HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, "
             "$HF_HOME/hub, else ~/.cache/huggingface/hub."},
    {.name = "hub-model-id",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Model id to show where --model-id is a folder of the cache. Set by the launcher."},
    {.name = "hub-commit",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Commit to show as model_sha. Set by the launcher."},
    {.name = "download-only",
     .type = Type::kBool,
     .default_text = "false",
     .components = kLauncher,
     .help = "Fetch the model, print its folder and end."},
    {.name = "served-model-name",
     .components = kLauncher | kRouter,
     .help = "Name under which the model is listed and answers. Unset: the text of --model-id."},
    {.name = "tokenizer-config-path",
     .type = Type::kPath,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "tokenizer_config.json whose chat template takes the place of the model's."},
    {.name = "device",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|cpu|cuda",
     .components = kLauncher | kShard,
     .help = "Device of the shards. auto: cuda if penstock-shard-cuda is built and each rank can "
             "have a GPU of its own, else cpu."},
    {.name = "share-gpus",
     .type = Type::kBool,
     .default_text = "false",
     .advanced = true,
     .components = kLauncher,
     .help =
         "With --device cuda: ranks and replicas may share GPUs when there are too few. Sums of "
         "ranks then go through host memory, which is slow: for checks."},
    {.name = "backend",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|cpu|cuda|reference",
     .components = kLauncher | kShard,
     .help = "What computes: cpu or cuda (own kernels, by device), reference (libtorch), or auto: "
             "own kernels if they have every operation of the model, else reference with a "
             "warning."},
    {.name = "dtype",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|float32|bfloat16|float16",
     .canonical = CanonicalDType,
     .components = kLauncher | kShard,
     .help = "Type of weights and arithmetic; auto takes the model's own. Short names (fp32, "
             "f32, bf16, fp16, f16, half) are understood."},
    {.name = "quantize",
     .advanced = true,
     .components = kLauncher | kShard,
     .refusal = "checkpoints that are quantized already are not read; int8 quantizes the model's "
                "own weights while they are loaded, --dtype bfloat16 halves float32 ones",
     .harmless = "none|int8",
     .help = "Quantization of the weights while they are loaded: int8 (a byte per weight, a scale "
             "per output; needs backend cpu) or none. Answers differ a little from those without."},
    {.name = "cpu-products",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|float|int16",
     .advanced = true,
     .components = kLauncher | kShard,
     .help = "How backend cpu multiplies bfloat16 weights. float: as they are. int16: weights as "
             "integers of 16 bits and activations of 14, each 128 with a scale, which errs less "
             "than rounding activations to bfloat16 and computes twice as fast as float32; needs "
             "AVX512_VNNI, and PENSTOCK_ISA=avx512 in the environment where the backend is "
             "cpu/avx512-bf16 without it (AMD's processors). auto: int16 wherever the instruction "
             "set is avx512 and has it. Answers differ in last digits."},
    {.name = "cpu-weights",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|plain|coded",
     .advanced = true,
     .components = kLauncher | kShard,
     .help =
         "How backend cpu keeps bfloat16 weights that it multiplies as they are. plain: in 16 "
         "bits each. coded: in 12, without loss, so that a quarter less memory is taken and "
         "read; needs a processor that multiplies bfloat16 pairs (cpu/avx512-bf16: AMD's from "
         "Zen 4 on), and weights of similar size: a model without is kept plain, with a warning. "
         "auto: coded there. Answers are the same, bit for bit."},
    {.name = "kv-cache-dtype",
     .default_text = "auto",
     .components = kLauncher | kShard,
     .refusal = "auto, float32, bfloat16 and int8 are understood; there are no 8-bit floats here",
     .harmless = "auto|float32|bfloat16|int8",
     .help = "Type of the KV cache: auto (that of --dtype), float32, bfloat16, or int8 (a byte and "
             "a scale per position and head). Other types than the model's need backend cpu."},
    {.name = "kv-cache-memory",
     .type = Type::kMemory,
     .default_text = "auto",
     .min = 1024,
     .allow_auto = true,
     .components = kLauncher | kShard,
     .help = "Memory for the KV cache: bytes (8GiB), or a share of the free memory (0.5, 50%). "
             "The launcher divides it among the ranks of a host."},
    {.name = "weights-cache",
     .type = Type::kPath,
     .components = kLauncher | kShard,
     .help =
         "Folder in which the cpu backend keeps packed weights and the warm-up's table, so that "
         "the next start is quicker. Takes as much disk as the weights. Unset: none."},
    {.name = "weights-cache-size",
     .type = Type::kBytes,
     .default_text = "64GiB",
     .min = 1,
     .advanced = true,
     .components = kLauncher | kShard,
     .help = "Most that --weights-cache keeps; what was used longest ago is removed for more."},
    {.name = "contrastive-search",
     .type = Type::kBool,
     .default_text = "false",
     .components = kLauncher | kRouter | kShard,
     .help = "Offer contrastive search (penalty_alpha, top_k). The KV cache then also keeps the "
             "last hidden state of each token, which takes memory."},
    {.name = "kv-layout",
     .type = Type::kEnum,
     .default_text = "paged",
     .choices = "paged|padded",
     .components = kLauncher | kShard,
     .help = "How the K/V of decoding rows are kept: paged in blocks; padded as dense right-padded "
             "sub-batches, which --split divides by length. padded runs on the reference backend: "
             "auto takes it then, with a warning."},
    {.name = "block-size",
     .type = Type::kInt,
     .default_text = "16",
     .min = 1,
     .max = 1024,
     .advanced = true,
     .components = kLauncher | kShard | kSimshard,
     .help = "Tokens in one block of the KV cache."},
    {.name = "cpu-threads",
     .type = Type::kInt,
     .default_text = "auto",
     .min = 1,
     .max = 1024,
     .allow_auto = true,
     .components = kLauncher | kShard,
     .help = "Worker threads: of all ranks together for the launcher, which divides them; of "
             "this rank for the shard. auto takes the cores that the process may use."},
};

}  // namespace

std::span<const OptionSpec> ModelRows() { return kRows; }

}  // namespace penstock::options
