#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    {.name = "log-level",
     .type = Type::kEnum,
     .default_text = "info",
     .choices = "debug|info|warning|error",
     .components = kAllComponents & ~kTool,
     .help = "Least severe message that is logged."},
    {.name = "log-format",
     .type = Type::kEnum,
     .default_text = "text",
     .choices = "text|json",
     .components = kAllComponents & ~kTool,
     .help = "text for people, json for one JSON object a line."},
    {.name = "json-output",
     .type = Type::kBool,
     .default_text = "false",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "The same as --log-format json."},
    {.name = "otlp-endpoint",
     .components = kLauncher | kRouter,
     .help = "OTLP/gRPC collector that gets a trace of every request: http://HOST:PORT or "
             "https://HOST:PORT."},
    {.name = "otlp-service-name",
     .default_text = "text-generation-inference.router",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Name of this service in its traces; the default is the name that TGI uses."},
    {.name = "step-log",
     .type = Type::kPath,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "File that gets one JSON line per step: rows, prompt tokens, sequences, blocks."},
    {.name = "record",
     .type = Type::kPath,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "File that gets every scheduler input, for `penstock-replay run`; it holds the "
             "token ids of prompts."},
};

}  // namespace

std::span<const OptionSpec> LogRows() { return kRows; }

}  // namespace penstock::options
