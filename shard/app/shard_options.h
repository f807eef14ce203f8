// The options of penstock-shard as ModelRankOptions.
#pragma once

#include <string>

#include "common/options/values.h"
#include "shard/app/platform.h"
#include "shard/executor/model_rank.h"

namespace penstock::shard {

// A line of --print-config: "# backend that runs: cpu/avx512-bf16", or why no backend can run.
// Depends on the model and this machine. Empty if the platform cannot tell.
std::string BackendLine(const options::Values& values);

// `kept_folder`: where the warm-up table is kept for the next start; empty: nowhere.
ModelRankOptions ReadShardOptions(const options::Values& values, Platform platform,
                                  const std::string& kept_folder);

}  // namespace penstock::shard
