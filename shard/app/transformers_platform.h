// The platform of --engine transformers, in which a Python child computes the model.
#pragma once

#include <absl/status/statusor.h>

#include "common/options/values.h"
#include "shard/app/platform.h"

namespace penstock::shard {

// Unavailable if there is no Python interpreter. open_model starts it; what it lacks is its error.
absl::StatusOr<Platform> OpenTransformersPlatform(const options::Values& values);

}  // namespace penstock::shard
