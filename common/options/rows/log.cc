#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kLogRows[] = {
    OptionSpec("log-level", OneOf("debug|info|warning|error"), "info",
               "Lowest level that is logged.", {.components = kAllComponents & ~kTool}),
    OptionSpec("log-format", OneOf("text|json"), "text",
               "text is for people; json prints one JSON object a line.",
               {.components = kAllComponents & ~kTool}),
    OptionSpec("json-output", Type::kBool, "false", "The same as --log-format json.",
               {.advanced = true}),
    OptionSpec(
        "otlp-endpoint", Type::kString, "",
        "OTLP/gRPC collector that gets a trace of every request: HOST:PORT, http://HOST:PORT "
        "or https://HOST:PORT."),
    OptionSpec("otlp-service-name", Type::kString, "",
               "Name of this service in its traces; unset: penstock, or with --api-profile tgi "
               "TGI's text-generation-inference.router.",
               {.advanced = true}),
    OptionSpec("audit-log", Type::kPath, "",
               "File to which one JSON line is appended for each request: tenant, route, status, "
               "tokens; no texts.",
               {.advanced = true}),
    OptionSpec("step-log", Type::kPath, "",
               "File that gets one JSON line per step: rows, prompt tokens, sequences, blocks.",
               {.advanced = true}),
    OptionSpec("record", Type::kPath, "",
               "File that gets every scheduler input, for `penstock-replay run`; it holds the "
               "token ids of prompts.",
               {.advanced = true}),
};

}  // namespace

std::span<const OptionSpec> LogRows() { return kLogRows; }

}  // namespace penstock::options
