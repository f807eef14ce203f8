// The Unix socket of a rank: `<prefix>-<rank>` in a directory that only this user may enter.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>

namespace penstock::shard {

// The path of the socket. Refuses a prefix that is not an absolute path and one that is too long
// for a sockaddr_un.
absl::StatusOr<std::string> SocketPath(const std::string& prefix, std::uint32_t rank);

// Creates the directory with mode 0700 if it is missing and sets `made_directory`. Refuses a
// directory that others may enter. Removes a stale socket on which no process listens.
absl::Status PrepareSocketPath(const std::string& path, bool& made_directory);

}  // namespace penstock::shard
