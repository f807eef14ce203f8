#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kCompatibilityRows[] = {
    OptionSpec(
        "api-profile", OneOf("penstock|tgi|djl"), "penstock",
        "Server that Penstock replaces: its errors, names and routes are used where dialects "
        "differ."),
    OptionSpec("serving-properties", Type::kPath, "",
               "serving.properties file of DJL-Serving, or its folder; its keys and the OPTION_* "
               "and SERVING_* variables set options.",
               {.components = kLauncher}),
    OptionSpec(
        "api-default", OneOf("tgi|djl"), "",
        "Dialect of a request on a route that two dialects share, if its keys fit both; unset: "
        "djl with --api-profile djl, else tgi.",
        {.advanced = true}),
    OptionSpec("vllm-metrics", Type::kBool, "false",
               "Show vLLM's names in /metrics too, for its dashboards and the endpoint picker of "
               "the Gateway API inference extension."),
    OptionSpec("decoding-strategy", OneOf("greedy|sample|contrastive"), "greedy",
               "Decoding of DJL requests that name no decoding_strategy.", {.advanced = true}),
    OptionSpec(
        "output-formatter", OneOf("auto|json|jsonlines|sse"), "auto",
        "Output format of DJL requests that name none; auto is json, or jsonlines if the body "
        "asks to stream.",
        {.advanced = true}),
    OptionSpec(
        "tgi-compat", Type::kBool, "false",
        "Answer DJL requests as option.tgi_compat does: with an array of one object, or with "
        "SSE if the body asks to stream.",
        {.advanced = true}),
};

}  // namespace

std::span<const OptionSpec> CompatibilityRows() { return kCompatibilityRows; }

}  // namespace penstock::options
