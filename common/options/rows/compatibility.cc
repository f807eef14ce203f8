#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    OptionSpec("api-profile", OneOf("penstock|tgi|djl"), "penstock",
               "Server whose clients are expected: its errors, facts and default routes are used "
               "where dialects differ."),
    OptionSpec("serving-properties", Type::kPath, "",
               "serving.properties file of DJL-Serving, or its folder; its keys and the OPTION_* "
               "and SERVING_* variables set options.",
               {.components = kLauncher}),
    OptionSpec(
        "api-default", OneOf("tgi|djl"), "",
        "Dialect of a request on a route that two dialects share, when its keys do not tell.",
        {.advanced = true}),
    OptionSpec("decoding-strategy", OneOf("greedy|sample|contrastive"), "greedy",
               "Decoding of DJL requests that name no decoding_strategy.", {.advanced = true}),
    OptionSpec("output-formatter", OneOf("auto|json|jsonlines|sse"), "auto",
               "Form of answers to DJL requests that ask for none; auto is json, or jsonlines when "
               "the body asks to stream.",
               {.advanced = true}),
    OptionSpec("tgi-compat", Type::kBool, "false",
               "Answer DJL requests in the form of option.tgi_compat: an array of one, or SSE when "
               "the body asks to stream.",
               {.advanced = true}),
};

}  // namespace

std::span<const OptionSpec> CompatibilityRows() { return kRows; }

}  // namespace penstock::options
