// Where a rank listens: a Unix socket `<prefix>-<rank>` in a directory that nobody else may enter.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace penstock::shard {

// The path of the socket. Refuses a prefix that is no absolute path (host:port, unix:…: a shard
// does not listen on TCP) and one that a sockaddr_un cannot hold.
absl::StatusOr<std::string> SocketPath(const std::string& prefix, std::uint32_t rank);

// Makes the directory with mode 0700 when it is missing (`made` tells), refuses one that others may
// enter, and removes a socket on which nobody listens any more.
absl::Status PrepareSocketPath(const std::string& path, bool& made_directory);

}  // namespace penstock::shard
