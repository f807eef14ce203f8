#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

// coded is the former name of compressed.
std::optional<std::string> CanonicalWeights(std::string_view text) {
  return std::string(text == "coded" ? "compressed" : text);
}

constexpr OptionSpec kMachineRows[] = {
    OptionSpec("num-shard", Int(1, 64), "1",
               "Ranks that the model is divided over (tensor parallelism).",
               {.aliases = "tensor-parallel-size"}),
    OptionSpec("num-replicas", Int(1, 64), "1",
               "Copies of the model, each on --num-shard ranks; one queue feeds all of them."),
    OptionSpec("device", OneOf("auto|cpu|cuda"), "auto",
               "Where the shards compute; auto takes cuda if penstock-shard-cuda is built and each "
               "rank can have its own GPU, else cpu.",
               {.components = kLauncher | kShard}),
    OptionSpec(
        "cpu-threads", Int(1, 1024), "auto",
        "Worker threads of all ranks together; auto takes the cores that the process may use.",
        {.allow_auto = true, .components = kLauncher | kShard}),
    OptionSpec("kv-cache-memory", Memory(1024), "auto",
               "Memory for the KV cache of all ranks on this host: bytes (8GiB) or a share of the "
               "free memory (0.5, 50%); auto takes what the running batch can need, at most half "
               "of the free memory on a CPU.",
               {.allow_auto = true, .components = kLauncher | kShard}),
    OptionSpec("kv-cache-dtype", Type::kString, "auto",
               "Type of the KV cache; auto takes that of --dtype, int8 and fp8_e4m3fn (on a GPU) "
               "take half "
               "the memory of bfloat16.",
               {.components = kLauncher | kShard,
                .refusal = "give auto, float32, bfloat16 or int8, or fp8_e4m3fn on a GPU",
                .harmless = "auto|float32|bfloat16|int8|fp8_e4m3fn"}),
    OptionSpec("weights-cache", Type::kPath, "",
               "Folder, as large as the weights, that keeps packed weights and warm-up times for a "
               "faster next start; unset: nothing is kept.",
               {.components = kLauncher | kShard}),
    OptionSpec("weights-cache-size", Bytes(1), "64GiB",
               "Largest size of --weights-cache; the least recently used files are removed first.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec("share-gpus", Type::kBool, "false",
               "Let ranks share a GPU when there are more ranks than GPUs; sums between ranks then "
               "pass through host memory, which is slow.",
               {.advanced = true, .components = kLauncher}),
    OptionSpec("backend", OneOf("auto|cpu|cuda|reference"), "auto",
               "Kernels that compute: cpu and cuda are Penstock's own, reference is libtorch; auto "
               "takes reference, with a warning, when the others lack an operation.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec("cpu-products", OneOf("auto|float|int16"), "auto",
               "Former name of --cpu-weights, for one release: float means plain.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec("cpu-weights", OneOf("auto|plain|compressed|int16", CanonicalWeights), "auto",
               "How the cpu backend stores and multiplies bfloat16 weights: plain, compressed (12 "
               "bits, no loss), int16 (changes last digits), or auto, the fastest here.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec("kv-layout", OneOf("paged|padded"), "paged",
               "How the KV cache is stored: paged in blocks, or padded in sub-batches. On a GPU "
               "padded needs the reference backend.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec("batch-invariant", Type::kBool, "false",
               "On a GPU: give every request the same bits whatever else is in its batch, which is "
               "slower. CPUs always do.",
               {.advanced = true, .components = kLauncher | kShard}),
    OptionSpec("block-size", Int(1, 1024), "16", "Tokens in one block of the KV cache.",
               {.advanced = true, .components = kLauncher | kShard | kSimshard}),
};

}  // namespace

std::span<const OptionSpec> MachineRows() { return kMachineRows; }

}  // namespace penstock::options
