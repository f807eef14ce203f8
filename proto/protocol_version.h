// The version of the shard protocol (penstock/v1/shard.proto). It changes with every change that an
// older router or shard would misread. A router drives only shards of its own version.
#pragma once

#include <cstdint>

namespace penstock::proto {

inline constexpr std::uint32_t kProtocolVersion = 3;

}  // namespace penstock::proto
