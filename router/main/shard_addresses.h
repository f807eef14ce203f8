// Parses --shards.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::router {

// Addresses by group and rank: an absolute path of a Unix socket, or "tcp:HOST:PORT".
using ShardGroups = std::vector<std::vector<std::string>>;

// "unix:/run/a-0,unix:/run/a-1;tcp:10.0.0.2:7000". An error names the entry.
absl::StatusOr<ShardGroups> ParseShardGroups(std::string_view text);

// Why the Unix socket at this address refuses a connection, in the words of TGI's router ("No such
// file or directory (os error 2)"). nullopt if it accepts, or for another kind of address.
// Thread-safe; does not block.
std::optional<std::string> ConnectError(const std::string& address);

}  // namespace penstock::router
