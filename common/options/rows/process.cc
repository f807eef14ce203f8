#include "common/options/rows/rows.h"

namespace penstock::options {

namespace {

constexpr OptionSpec kRows[] = {
    {.name = "num-shard",
     .type = Type::kInt,
     .default_text = "1",
     .min = 1,
     .max = 64,
     .components = kLauncher | kRouter,
     .aliases = "tensor-parallel-size",
     .help = "Ranks among which the model is divided (tensor parallelism)."},
    {.name = "startup-timeout",
     .type = Type::kDuration,
     .default_text = "300s",
     .min = 0,
     .max = 86400,
     .components = kLauncher,
     .help = "Longest time without progress until the server is ready; 0 waits forever."},
    {.name = "graceful-termination-timeout",
     .short_name = 'g',
     .type = Type::kDuration,
     .default_text = "90s",
     .min = 0,
     .max = 86400,
     .components = kLauncher | kRouter,
     .help = "Longest time that running requests get to finish after SIGTERM or Ctrl-C."},
    {.name = "socket-dir",
     .type = Type::kPath,
     .advanced = true,
     .components = kLauncher,
     .help = "Folder in which the private folder of shard sockets is made. Unset: "
             "$XDG_RUNTIME_DIR, else /tmp."},
    {.name = "shard-program",
     .type = Type::kPath,
     .advanced = true,
     .components = kLauncher,
     .help = "Program started for each rank. Unset: penstock-shard beside the launcher."},
    {.name = "router-program",
     .type = Type::kPath,
     .advanced = true,
     .components = kLauncher,
     .help = "Program started as the router. Unset: penstock-router beside the launcher."},
    {.name = "shard-uds-path",
     .type = Type::kPath,
     .required = kRouter | kShard | kSimshard,
     .components = kRouter | kShard | kSimshard,
     .help = "Prefix of the shards' Unix sockets: rank r listens on PREFIX-r."},
    {.name = "rank",
     .type = Type::kInt,
     .default_text = "0",
     .min = 0,
     .max = 63,
     .components = kShard | kSimshard,
     .help = "Rank of this shard in its group."},
    {.name = "world-size",
     .type = Type::kInt,
     .default_text = "1",
     .min = 1,
     .max = 64,
     .components = kShard | kSimshard,
     .help = "Ranks in the group."},
    {.name = "local-ranks",
     .type = Type::kInt,
     .default_text = "1",
     .min = 1,
     .max = 64,
     .components = kShard,
     .help = "Ranks on this host, among which `auto` values of memory and threads are divided."},
};

}  // namespace

std::span<const OptionSpec> ProcessRows() { return kRows; }

}  // namespace penstock::options
