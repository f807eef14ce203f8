#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    {.name = "serving-properties",
     .type = Type::kPath,
     .components = kLauncher,
     .help = "A serving.properties file of DJL-Serving, or the folder that holds it. Its keys and "
             "the OPTION_* and SERVING_* variables set options (docs/api/serving-properties.md), "
             "below PENSTOCK_* variables and the command line; --api-profile is djl, the address "
             "0.0.0.0:8080. With --api-profile djl and no such option: /opt/ml/model."},
    {.name = "api-default",
     .type = Type::kEnum,
     .choices = "tgi|djl",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Whose request a body is on a route that several interfaces have, when its keys do "
             "not tell (POST /invocations). Unset: djl with --api-profile djl, else tgi."},
    {.name = "decoding-strategy",
     .type = Type::kEnum,
     .default_text = "greedy",
     .choices = "greedy|sample|contrastive",
     .components = kLauncher | kRouter,
     .help = "How DJL's requests that name no decoding_strategy are decoded; do_sample makes it "
             "sample."},
    {.name = "output-formatter",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|json|jsonlines|sse",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Form of answers to DJL's requests that ask for none: auto is json, or jsonlines "
             "where the body says stream."},
    {.name = "tgi-compat",
     .type = Type::kBool,
     .default_text = "false",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Answers to DJL's requests in the shape of option.tgi_compat: an array of one, SSE "
             "where the body says stream."},
    {.name = "cached-prompts",
     .type = Type::kInt,
     .default_text = "10",
     .min = 0,
     .max = 4096,
     .components = kLauncher | kRouter,
     .help = "Prompts that requests asked to keep with cached_prompt, of each group; the least "
             "recently used one goes. 0 keeps none."},
    {.name = "cached-prompt-memory",
     .type = Type::kMemory,
     .default_text = "50%",
     .min = 0,
     .components = kLauncher | kRouter,
     .help = "Most of the KV cache that kept prompts may take: bytes of all ranks together, or a "
             "share of the cache."},
};

}  // namespace

std::span<const OptionSpec> DjlRows() { return kRows; }

}  // namespace penstock::options
