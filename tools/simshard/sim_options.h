// Options of penstock-simshard: the shards that it hosts.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/options/values.h"
#include "shard/service/run_shards.h"

namespace penstock::simshard {

// With --rank one shard per group, otherwise one for each rank of --world-size. --num-groups is the
// number of groups.
absl::StatusOr<std::vector<shard::HostedShard>> MakeShards(const options::Values& values);

}  // namespace penstock::simshard
