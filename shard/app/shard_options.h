// Options of penstock-shard as the engine wants them.
#pragma once

#include "common/options/values.h"
#include "shard/app/platform.h"
#include "shard/executor/model_engine.h"

namespace penstock::shard {

ModelEngineOptions ReadShardOptions(const options::Values& values, Platform platform);

}  // namespace penstock::shard
