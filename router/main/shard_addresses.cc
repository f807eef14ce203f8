#include "router/main/shard_addresses.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "common/bad_option.h"
#include "common/status.h"

namespace penstock::router {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kTcp = "tcp:";

bool IsPort(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0;
}

absl::StatusOr<std::string> ParseAddress(const std::string& text) {
  if (text.starts_with(kUnix) && text.size() > kUnix.size() && text[kUnix.size()] == '/') {
    return text.substr(kUnix.size());
  }
  const std::size_t colon = text.rfind(':');
  if (text.starts_with(kTcp) && colon > kTcp.size() && IsPort(text.substr(colon + 1))) return text;
  return BadOption("shards", text, "unix:/PATH or tcp:HOST:PORT for each rank");
}

}  // namespace

absl::StatusOr<ShardGroups> ParseShardGroups(std::string_view text) {
  ShardGroups groups;
  std::set<std::string> seen;
  std::istringstream parts{std::string(text)};
  for (std::string part; std::getline(parts, part, ';');) {
    std::istringstream entries(part);
    groups.emplace_back();
    for (std::string entry; std::getline(entries, entry, ',');) {
      PENSTOCK_ASSIGN_OR_RETURN(std::string address, ParseAddress(entry));
      if (!seen.insert(address).second) {
        return BadOption("shards", entry, "an address of its own for each rank");
      }
      groups.back().push_back(std::move(address));
    }
    if (groups.back().empty())
      return BadOption("shards", text, "a list without an empty replica group");
  }
  return groups;
}

std::optional<std::string> ConnectError(const std::string& address) {
  sockaddr_un target{};
  target.sun_family = AF_UNIX;
  if (!address.starts_with('/') || address.size() >= sizeof(target.sun_path)) return std::nullopt;
  std::ranges::copy(address, target.sun_path);
  const int handle = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (handle < 0) return std::nullopt;
  const auto* const name = reinterpret_cast<const sockaddr*>(&target);
  const int error = connect(handle, name, sizeof(target)) == 0 ? 0 : errno;
  close(handle);
  if (error != ENOENT && error != ECONNREFUSED) return std::nullopt;
  return std::generic_category().message(error) + " (os error " + std::to_string(error) + ")";
}

}  // namespace penstock::router
