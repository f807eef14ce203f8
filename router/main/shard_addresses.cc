#include "router/main/shard_addresses.h"

#include <charconv>
#include <cstdint>
#include <sstream>
#include <utility>

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
  return BadValue("shards", text, "unix:/PATH or tcp:HOST:PORT for each rank");
}

}  // namespace

absl::StatusOr<ShardGroups> ParseShardGroups(std::string_view text) {
  ShardGroups groups;
  std::istringstream parts{std::string(text)};
  for (std::string part; std::getline(parts, part, ';');) {
    std::istringstream entries(part);
    groups.emplace_back();
    for (std::string entry; std::getline(entries, entry, ',');) {
      PENSTOCK_ASSIGN_OR_RETURN(std::string address, ParseAddress(entry));
      groups.back().push_back(std::move(address));
    }
    if (groups.back().empty()) return BadValue("shards", text, "without an empty group");
  }
  return groups;
}

}  // namespace penstock::router
