// The names of the shards of one host and of their Unix sockets, for the launcher, the router and
// the shards. With one replica group the names have no group.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace penstock {

// `<prefix>-<group>` with several groups, else the prefix itself. Rank r listens on
// `<result>-<r>`.
inline std::string GroupSocketPrefix(const std::string& prefix, std::optional<std::int64_t> group) {
  return group.has_value() ? prefix + "-" + std::to_string(*group) : prefix;
}

// "shard-0", with several groups "shard-1.0" for rank 0 of group 1.
inline std::string ShardName(std::optional<std::int64_t> group, std::int64_t rank) {
  const std::string text = std::to_string(rank);
  return group.has_value() ? "shard-" + std::to_string(*group) + "." + text : "shard-" + text;
}

}  // namespace penstock
