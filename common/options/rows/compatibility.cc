#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    {.name = "api-profile",
     .type = Type::kEnum,
     .default_text = "penstock",
     .choices = "penstock|tgi|djl",
     .components = kLauncher | kRouter,
     .help = "Server whose clients are expected: its errors, facts and default routes are "
             "used where dialects differ."},
    {.name = "serving-properties",
     .type = Type::kPath,
     .components = kLauncher,
     .help = "serving.properties file of DJL-Serving, or its folder; its keys and the "
             "OPTION_* and SERVING_* variables set options."},
    {.name = "api-default",
     .type = Type::kEnum,
     .choices = "tgi|djl",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Dialect of a request on a route that two dialects share, when its keys do not "
             "tell."},
    {.name = "decoding-strategy",
     .type = Type::kEnum,
     .default_text = "greedy",
     .choices = "greedy|sample|contrastive",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Decoding of DJL requests that name no decoding_strategy."},
    {.name = "output-formatter",
     .type = Type::kEnum,
     .default_text = "auto",
     .choices = "auto|json|jsonlines|sse",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Form of answers to DJL requests that ask for none; auto is json, or jsonlines "
             "when the body asks to stream."},
    {.name = "tgi-compat",
     .type = Type::kBool,
     .default_text = "false",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Answer DJL requests in the form of option.tgi_compat: an array of one, or SSE "
             "when the body asks to stream."},
};

}  // namespace

std::span<const OptionSpec> CompatibilityRows() { return kRows; }

}  // namespace penstock::options
