// Options of penstock-simshard as what it hosts.
#pragma once

#include <absl/status/statusor.h>

#include <vector>

#include "common/options/values.h"
#include "shard/service/run_shards.h"

namespace penstock::simshard {

// One shard for --rank when it is given, else one for each rank of --world-size; all of that for
// each group of --num-groups.
absl::StatusOr<std::vector<shard::HostedShard>> MakeShards(const options::Values& values);

}  // namespace penstock::simshard
