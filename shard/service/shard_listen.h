// The addresses on which the shards of a process listen: Unix sockets in a private folder, or TCP
// for routers on other machines. TCP always needs mutual TLS.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/options/values.h"
#include "common/tls_identity.h"

namespace penstock::shard {

// The address of one rank. One of the first two is set.
struct ListenAddress {
  std::string socket_prefix;  // a Unix socket, `<prefix>-<rank>`
  std::string tcp;            // host:port
  std::shared_ptr<const TlsIdentity> tls;
};

// The addresses of a process.
struct ShardListen {
  std::string socket_prefix;
  std::string host;
  std::uint16_t port = 0;
  std::shared_ptr<const TlsIdentity> tls;

  // The address of the index-th shard of the process. TCP ports count up from `port`.
  ListenAddress At(std::optional<std::int64_t> group, std::uint32_t index) const;
};

// From --shard-uds-path or --shard-listen, and --shard-tls-*.
absl::StatusOr<ShardListen> ReadShardListen(const options::Values& values);

}  // namespace penstock::shard
