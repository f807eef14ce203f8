// Options of penstock-shard as the engine wants them.
#pragma once

#include <absl/status/statusor.h>

#include "common/options/values.h"
#include "shard/executor/model_engine.h"

namespace penstock::shard {

// Unimplemented, with the way out, for a device that this executable does not serve.
absl::StatusOr<ModelEngineOptions> ReadShardOptions(const options::Values& values);

}  // namespace penstock::shard
