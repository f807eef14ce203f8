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
     .components = kLauncher | kRouter,
     .help = "The same as --log-format json."},
    {.name = "otlp-endpoint",
     .components = kLauncher | kRouter,
     .help =
         "Collector that gets a trace of every request, by OTLP over gRPC: http://HOST:PORT, or "
         "https for TLS. Unset: none."},
    {.name = "otlp-service-name",
     .default_text = "text-generation-inference.router",
     .components = kLauncher | kRouter,
     .help = "Name of this service in its traces; the default is that of TGI, whose dashboards ask "
             "for it."},
    {.name = "step-log",
     .type = Type::kPath,
     .components = kLauncher | kRouter,
     .help = "File that gets one JSON line per engine step: rows, prefill tokens, sequences, "
             "blocks."},
    {.name = "record",
     .type = Type::kPath,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "File that gets every input of the scheduler, for `penstock-replay run`. It holds the "
             "prompts' token ids."},
};

}  // namespace

std::span<const OptionSpec> LogRows() { return kRows; }

}  // namespace penstock::options
