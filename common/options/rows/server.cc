#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kServerRows[] = {
    OptionSpec("port", Int(0, 65535), "3000",
               "Port of the HTTP server; 0 takes a free one and prints it.", {.short_name = 'p'}),
    OptionSpec("hostname", Type::kString, "127.0.0.1",
               "Address that the HTTP server listens on; 0.0.0.0 for every address of the machine.",
               {.aliases = "host"}),
    OptionSpec("api-key", Type::kString, "",
               "Key that clients must send as `Authorization: Bearer KEY`; none is needed if this "
               "and --api-keys-file are unset.",
               {.secret = true}),
    OptionSpec("api-keys-file", Type::kPath, "",
               "File with one `name:key` a line, or a YAML file of tenants with keys, weights and "
               "limits; each name is a tenant with its own prefix cache, log name and metrics."),
    OptionSpec("tls-cert", Type::kPath, "",
               "Certificate chain (PEM) of the HTTP server, which then speaks HTTPS only; unset: "
               "plain HTTP."),
    OptionSpec("tls-key", Type::kPath, "", "Private key (PEM, without a password) of --tls-cert."),
    OptionSpec("tls-client-ca", Type::kPath, "",
               "Certificate authorities (PEM). A client is served only if one of them signed its "
               "certificate.",
               {.advanced = true}),
    OptionSpec("cors-allow-origin", Type::kList, "",
               "Web origins whose pages may read answers, * for all; unset: none, or all with "
               "--api-profile tgi."),
    OptionSpec("cors-allow-headers", Type::kList, "",
               "Request headers that such pages may send, beside those that clients of OpenAI and "
               "Anthropic send; `x-name-*` allows every header that starts with `x-name-`.",
               {.advanced = true}),
    OptionSpec("console", Type::kBool, "true",
               "Serve a page on `/` with a chat and a live view of the batch."),
    OptionSpec(
        "strict-json", Type::kBool, "false",
        "Refuse request bodies with unknown keys; if off, the response header X-Penstock-Ignored "
        "names them."),
    OptionSpec("trust-request-chat-template", Type::kBool, "false",
               "Let chats bring a template of their own in `chat_template`; if off, it is refused.",
               {.advanced = true}),
    OptionSpec(
        "response-store-entries", Int(0, 1000000), "1024",
        "Maximum number of responses kept for GET /v1/responses/{id} and previous_response_id; "
        "the oldest leave first. 0 keeps none.",
        {.advanced = true}),
    OptionSpec("response-store-memory", Bytes(1048576), "64MiB",
               "Maximum size of the kept responses together.", {.advanced = true}),
    OptionSpec(
        "drop-volatile-lines", Type::kBool, "false",
        "Drop lines of system messages that change with each request or day, so that prompts find "
        "the blocks of earlier ones: a billing header, today's date.",
        {.advanced = true}),
    OptionSpec(
        "prompt-history", Int(0, 65536), "256",
        "Newest prompts that the router keeps to say why one missed the prefix cache; 0: none.",
        {.advanced = true}),
    OptionSpec("admin-key-name", Type::kString, "",
               "Name of the API key that may read GET /requests/{id} of every tenant; unset: none.",
               {.advanced = true}),
    OptionSpec("request-timeout", Duration(0, 86400), "600s",
               "Longest time of an answer, also of a request that waits; the request header "
               "X-Request-Timeout may shorten it; 0 is no limit."),
    OptionSpec("payload-limit", Bytes(1024, 1073741824), "16MiB", "Maximum size of a request body.",
               {.advanced = true}),
    OptionSpec(
        "stream-interval", Duration(0, 1), "0ms",
        "Shortest time between two writes of a stream; faster tokens share a write. 0 writes "
        "each token at once.",
        {.advanced = true}),
    OptionSpec(
        "health-probe-idle", Duration(0, 86400), "30s",
        "Idle time after which /health generates one token to check the shards; 0 never does.",
        {.advanced = true}),
    OptionSpec("compute-type", Type::kString, "",
               "Value of the response header x-compute-type; unset: the device of the shards.",
               {.advanced = true}),
    OptionSpec("io-threads", Int(1, 64), "2",
               "Threads of the router that read and write connections.", {.advanced = true}),
    OptionSpec("validation-workers", Int(1, 64), "2",
               "Threads of the router that render chat templates, tokenize and detokenize.",
               {.advanced = true}),
};

}  // namespace

std::span<const OptionSpec> ServerRows() { return kServerRows; }

}  // namespace penstock::options
