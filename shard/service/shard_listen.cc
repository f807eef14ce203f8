#include "shard/service/shard_listen.h"

#include <charconv>

#include "common/bad_option.h"
#include "common/options/tls_files.h"
#include "common/socket_names.h"
#include "common/status.h"

namespace penstock::shard {
namespace {

constexpr std::string_view kTcp = "tcp:";

absl::Status ReadTcp(const std::string& text, ShardListen& listen) {
  const std::size_t colon = text.rfind(':');
  const char* end = text.data() + text.size();
  if (text.starts_with(kTcp) && colon > kTcp.size()) {
    const auto read = std::from_chars(text.data() + colon + 1, end, listen.port);
    if (read.ec == std::errc() && read.ptr == end && listen.port > 0) {
      listen.host = text.substr(kTcp.size(), colon - kTcp.size());
      return absl::OkStatus();
    }
  }
  return BadOption("shard-listen", text, "tcp:HOST:PORT");
}

}  // namespace

ListenAddress ShardListen::At(std::optional<std::int64_t> group, std::uint32_t index) const {
  ListenAddress address;
  if (host.empty()) {
    address.socket_prefix = GroupSocketPrefix(socket_prefix, group);
  } else {
    address.tcp = host + ":" + std::to_string(port + index);
    address.tls = tls;
  }
  return address;
}

absl::StatusOr<ShardListen> ReadShardListen(const options::Values& values) {
  ShardListen listen;
  listen.socket_prefix = values.GetString("shard-uds-path");
  const std::string& tcp = values.GetString("shard-listen");
  if (tcp.empty() == listen.socket_prefix.empty()) {
    return absl::InvalidArgumentError("one of --shard-uds-path and --shard-listen must be given");
  }
  PENSTOCK_ASSIGN_OR_RETURN(listen.tls, options::ReadShardTls(values));
  if (tcp.empty()) return listen;
  PENSTOCK_RETURN_IF_ERROR(ReadTcp(tcp, listen));
  if (listen.tls == nullptr) {
    return BadOption("shard-listen", tcp,
                     "given with --shard-tls-cert, --shard-tls-key and --shard-tls-ca: shards "
                     "listen on TCP with "
                     "mutual TLS only");
  }
  return listen;
}

}  // namespace penstock::shard
