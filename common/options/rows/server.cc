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
     .help = "Address that the HTTP server listens on; 0.0.0.0 for every address of the machine."},
    {.name = "api-key",
     .components = kLauncher | kRouter,
     .secret = true,
     .help = "Key that clients must send as `Authorization: Bearer KEY`; unset, without "
             "--api-keys-file: no key is needed."},
    {.name = "api-keys-file",
     .type = Type::kPath,
     .components = kLauncher | kRouter,
     .help = "File with one `name:key` a line; each name is a tenant with its own prefix "
             "cache, log name and metrics."},
    {.name = "tls-cert",
     .type = Type::kPath,
     .components = kLauncher | kRouter,
     .help = "Certificate chain (PEM) of the HTTP server, which then speaks HTTPS only; "
             "SIGHUP reads the --tls-* files again."},
    {.name = "tls-key",
     .type = Type::kPath,
     .components = kLauncher | kRouter,
     .help = "Private key (PEM, without a password) of --tls-cert."},
    {.name = "tls-client-ca",
     .type = Type::kPath,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Certificate authorities (PEM). A client is served only if one of them signed "
             "its certificate."},
    {.name = "cors-allow-origin",
     .type = Type::kList,
     .components = kLauncher | kRouter,
     .help = "Origins whose pages may read answers; * for all."},
    {.name = "payload-limit",
     .type = Type::kBytes,
     .default_text = "16MiB",
     .min = 1024,
     .max = 1073741824,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Largest body of a request."},
    {.name = "stream-interval",
     .type = Type::kDuration,
     .default_text = "0",
     .min = 0,
     .max = 1,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Shortest time between two writes of a stream; faster tokens share a write, and "
             "0 writes each token at once."},
    {.name = "health-probe-idle",
     .type = Type::kDuration,
     .default_text = "30s",
     .min = 0,
     .max = 86400,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Idle time after which /health generates one token to check the shards; 0 never "
             "does."},
    {.name = "compute-type",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Value of the header x-compute-type; unset: the device of the shards."},
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
     .help = "Threads of the router that render chat templates, tokenize and detokenize; "
             "auto is 2."},
};

}  // namespace

std::span<const OptionSpec> ServerRows() { return kRows; }

}  // namespace penstock::options
