#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    {.name = "device",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|cpu|cuda",
     .components = kLauncher | kShard,
     .help = "Where the shards compute; auto takes cuda if penstock-shard-cuda is built and "
             "each rank can have its own GPU."},
    {.name = "num-shard",
     .type = Type::kInt,
     .default_text = "1",
     .min = 1,
     .max = 64,
     .components = kLauncher | kRouter,
     .aliases = "tensor-parallel-size",
     .help = "Ranks that the model is divided over (tensor parallelism)."},
    {.name = "num-replicas",
     .type = Type::kInt,
     .default_text = "1",
     .min = 1,
     .max = 64,
     .components = kLauncher | kRouter,
     .help = "Copies of the model, each on --num-shard ranks; one queue feeds all of them."},
    {.name = "cpu-threads",
     .type = Type::kInt,
     .default_text = "auto",
     .min = 1,
     .max = 1024,
     .allow_auto = true,
     .components = kLauncher | kShard,
     .help = "Worker threads of all ranks together; auto takes the cores that the process "
             "may use."},
    {.name = "kv-cache-memory",
     .type = Type::kMemory,
     .default_text = "auto",
     .min = 1024,
     .allow_auto = true,
     .components = kLauncher | kShard,
     .help = "Memory for the KV cache of all ranks on this host: bytes (8GiB) or a share of "
             "the free memory (0.5, 50%)."},
    {.name = "kv-cache-dtype",
     .default_text = "auto",
     .components = kLauncher | kShard,
     .refusal = "auto, float32, bfloat16 and int8 are understood; there are no 8-bit floats here",
     .harmless = "auto|float32|bfloat16|int8",
     .help = "Type of the KV cache: auto (the type of --dtype), float32, bfloat16, or int8, "
             "which halves bfloat16."},
    {.name = "weights-cache",
     .type = Type::kPath,
     .components = kLauncher | kShard,
     .help = "Folder that keeps packed weights and warm-up times, so that the next start is "
             "faster; it takes as much disk as the weights."},
    {.name = "weights-cache-size",
     .type = Type::kBytes,
     .default_text = "64GiB",
     .min = 1,
     .advanced = true,
     .components = kLauncher | kShard,
     .help = "Most bytes that --weights-cache keeps; the least recently used files are "
             "removed first."},
    {.name = "share-gpus",
     .type = Type::kBool,
     .default_text = "false",
     .advanced = true,
     .components = kLauncher,
     .help = "Let ranks share a GPU when there are too few; sums between ranks then pass "
             "through host memory, which is slow."},
    {.name = "backend",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|cpu|cuda|reference",
     .advanced = true,
     .components = kLauncher | kShard,
     .help = "Kernels that compute: cpu and cuda are Penstock's own, reference is libtorch; "
             "auto takes reference, with a warning, when the others lack an operation."},
    {.name = "cpu-products",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|float|int16",
     .advanced = true,
     .components = kLauncher | kShard,
     .help = "Former name of --cpu-weights, for one release: float means plain."},
    {.name = "cpu-weights",
     .default_text = "auto",
     .advanced = true,
     .components = kLauncher | kShard,
     .help = "How the cpu backend stores and multiplies bfloat16 weights: plain, compressed (12 "
             "bits, no loss), int16 (changes last digits), or auto, the fastest here."},
    {.name = "kv-layout",
     .type = Type::kEnum,
     .default_text = "paged",
     .choices = "paged|padded",
     .advanced = true,
     .components = kLauncher | kShard,
     .help = "How the KV cache is stored: paged in blocks, or padded in dense sub-batches, "
             "which needs the reference backend."},
    {.name = "block-size",
     .type = Type::kInt,
     .default_text = "16",
     .min = 1,
     .max = 1024,
     .advanced = true,
     .components = kLauncher | kShard | kSimshard,
     .help = "Tokens in one block of the KV cache."},
};

}  // namespace

std::span<const OptionSpec> MachineRows() { return kRows; }

}  // namespace penstock::options
