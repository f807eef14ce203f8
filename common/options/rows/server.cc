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
    {.name = "tls-cert",
     .type = Type::kPath,
     .components = kLauncher | kRouter,
     .help = "Certificate (PEM, with the chain behind it) of the HTTP server, which then speaks "
             "HTTPS only. SIGHUP reads the --tls-* files again."},
    {.name = "tls-key",
     .type = Type::kPath,
     .components = kLauncher | kRouter,
     .help = "Private key (PEM, without a password) of --tls-cert."},
    {.name = "tls-client-ca",
     .type = Type::kPath,
     .components = kLauncher | kRouter,
     .help = "Authorities (PEM): only clients that show a certificate signed by one of them are "
             "served. Unset: clients need none."},
    {.name = "payload-limit",
     .type = Type::kBytes,
     .default_text = "16MiB",
     .min = 1024,
     .max = 1073741824,
     .components = kLauncher | kRouter,
     .help = "Largest body of a request."},
    {.name = "stream-interval",
     .type = Type::kDuration,
     .default_text = "0",
     .min = 0,
     .max = 1,
     .advanced = true,
     .components = kLauncher | kRouter,
     .help =
         "Where steps are shorter than this, tokens of a stream wait for each other so long and go "
         "out in one write, each still its own event; never the first or the last. Saves CPU time "
         "of the router at very high rates; 0 sends each token at once."},
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
    {.name = "api-key",
     .components = kLauncher | kRouter,
     .secret = true,
     .help =
         "Key that requests must bring as `Authorization: Bearer KEY`; its name is \"default\". "
         "Unset, like --api-keys-file: none is asked for."},
    {.name = "api-keys-file",
     .type = Type::kPath,
     .components = kLauncher | kRouter,
     .help = "File of keys, one `name:key` a line. The name is the tenant: tenants share no prefix "
             "cache, and logs and metrics name them. SIGHUP reads the file again."},
    {.name = "cors-allow-origin",
     .type = Type::kList,
     .components = kLauncher | kRouter,
     .help = "Origins whose pages may read answers; * for all. Unset: no CORS headers are sent, "
             "or * where --api-profile is tgi."},
    {.name = "api-profile",
     .type = Type::kEnum,
     .default_text = "penstock",
     .choices = "penstock|tgi|djl",
     .components = kLauncher | kRouter,
     .help = "tgi: OpenAI routes, errors of HTTP itself and facts answer in the words of "
             "text-generation-inference, for its clients; penstock: as OpenAI's API; djl: the "
             "same, and POST /invocations is DJL-Serving's."},
    {.name = "compute-type",
     .advanced = true,
     .components = kLauncher | kRouter,
     .help = "Value of the header x-compute-type. Unset: the device of the shards."},
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
