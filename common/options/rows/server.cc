#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    {.name = "port",
     .short_name = 'p',
     .type = Type::kInt,
     .default_text = "3000",
     .min = 0,
     .max = 65535,
     .components = kLauncher | kRouter,
     .help = "Port of the HTTP server; 0 takes a free one and prints it."},
    {.name = "hostname",
     .default_text = "127.0.0.1",
     .components = kLauncher | kRouter,
     .aliases = "host",
     .help = "Address that the HTTP server listens on; 0.0.0.0 for all of the machine."},
    {.name = "payload-limit",
     .type = Type::kBytes,
     .default_text = "16MiB",
     .min = 1024,
     .max = 1073741824,
     .components = kLauncher | kRouter,
     .help = "Largest body of a request."},
    {.name = "health-probe-idle",
     .type = Type::kDuration,
     .default_text = "30s",
     .min = 0,
     .max = 86400,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help =
         "When nothing was computed for so long, /health generates one token to see whether the "
         "shards still work; 0 never does."},
    {.name = "io-threads",
     .type = Type::kInt,
     .default_text = "2",
     .min = 1,
     .max = 64,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Threads of the router that read and write connections."},
    {.name = "validation-workers",
     .type = Type::kInt,
     .default_text = "2",
     .min = 1,
     .max = 64,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Threads of the router that render chat templates, tokenize and detokenize."},
};

}  // namespace

std::span<const OptionSpec> ServerRows() { return kRows; }

}  // namespace penstock::options
