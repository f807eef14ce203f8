#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kProcessRows[] = {
    OptionSpec("startup-timeout", Duration(0, 86400), "300s",
               "Longest time without progress until the server is ready: seconds, or 250ms, 90s, "
               "5m; 0 waits without limit."),
    OptionSpec("graceful-termination-timeout", Duration(0, 86400), "90s",
               "Longest time that running requests get to finish after SIGTERM or Ctrl-C.",
               {.short_name = 'g', .aliases = "shutdown-timeout"}),
    OptionSpec("step-timeout", Duration(0.01, 86400), "60s",
               "Longest time of one step; after it the shards count as lost.", {.advanced = true}),
    OptionSpec("rank-timeout", Duration(0, 3600), "4s",
               "Time after which a local shard counts as lost if it is stopped or does not answer "
               "during a step; 0: never.",
               {.advanced = true}),
    OptionSpec(
        "restart", OneOf("always|never"), "always",
        "Whether the launcher starts the only replica group again after its loss; never: the "
        "server ends. One of several groups is always started again.",
        {.advanced = true, .components = kLauncher | kRouter}),
    OptionSpec(
        "recovery-timeout", Duration(0, 86400), "60s",
        "Longest time that a running request waits for a replica group after the loss of its "
        "own; 0: it ends with its group.",
        {.advanced = true}),
    OptionSpec("socket-dir", Type::kPath, "",
               "Folder in which the launcher makes a private folder for shard sockets; unset: "
               "$XDG_RUNTIME_DIR, else /tmp.",
               {.advanced = true, .components = kLauncher}),
    OptionSpec(
        "shard-program", Type::kPath, "",
        "Program of each rank; unset: penstock-shard or, on GPUs, penstock-shard-cuda beside "
        "the launcher.",
        {.advanced = true, .components = kLauncher}),
    OptionSpec("router-program", Type::kPath, "",
               "Program of the router; unset: penstock-router beside the launcher.",
               {.advanced = true, .components = kLauncher}),
    OptionSpec(
        "shard-uds-path", Type::kPath, "",
        "Prefix of the shards' Unix sockets: rank r listens on PREFIX-r, or PREFIX-g-r with "
        "several replica groups. Their folder must have mode 0700; unset: the launcher makes "
        "a private folder.",
        {.advanced = true, .components = kLauncher | kRouter | kShard | kSimshard}),
    OptionSpec("shards", Type::kString, "",
               "Running shards to use instead of --shard-uds-path: unix:PATH or tcp:HOST:PORT, "
               "commas between ranks, semicolons between replica groups.",
               {.components = kRouter}),
    OptionSpec("shard-listen", Type::kString, "",
               "tcp:HOST:PORT to listen on instead of --shard-uds-path; needs --shard-tls-*.",
               {.components = kShard | kSimshard}),
    OptionSpec("shard-tls-cert", Type::kPath, "",
               "Certificate (PEM) of this side for TCP connections between router and shards.",
               {.components = kRouter | kShard | kSimshard}),
    OptionSpec("shard-tls-key", Type::kPath, "", "Private key (PEM) of --shard-tls-cert.",
               {.components = kRouter | kShard | kSimshard}),
    OptionSpec("shard-tls-ca", Type::kPath, "",
               "Certificate authority (PEM) that signed the certificates of the other side.",
               {.components = kRouter | kShard | kSimshard}),
    OptionSpec("rank", Int(0, 63), "0", "Rank of this shard in its group.",
               {.components = kShard | kSimshard}),
    OptionSpec("world-size", Int(1, 64), "1", "Number of ranks in the group.",
               {.components = kShard | kSimshard}),
    OptionSpec(
        "group", Int(0, 63), "",
        "Number of this shard's replica group, for its sockets and log records; unset: there "
        "is one group.",
        {.advanced = true, .components = kShard | kSimshard}),
    OptionSpec("local-ranks", Int(1, 64), "1",
               "Ranks on this host. They share the memory and threads that `auto` finds.",
               {.components = kShard}),
};

}  // namespace

std::span<const OptionSpec> ProcessRows() { return kProcessRows; }

}  // namespace penstock::options
