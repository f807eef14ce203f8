// Options of penstock-shard as the engine wants them.
#pragma once

#include <string>

#include "common/options/values.h"
#include "shard/app/platform.h"
#include "shard/executor/model_rank.h"

namespace penstock::shard {

// What --print-config adds: "backend that runs = cpu/avx512-bf16", found out from the model's
// folder and this machine, or why nothing can run. Empty where the platform does not tell.
std::string BackendLine(const options::Values& values);

// `kept_folder`: where the warm-up's table is kept for the next start; empty: nowhere.
ModelRankOptions ReadShardOptions(const options::Values& values, Platform platform,
                                  const std::string& kept_folder);

}  // namespace penstock::shard
