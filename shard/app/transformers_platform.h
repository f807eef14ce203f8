// The platform of --engine transformers, in which a Python child computes the model.
#pragma once

#include <absl/status/statusor.h>

#include "common/options/values.h"
#include "shard/app/platform.h"

namespace penstock::shard {

// Unavailable if there is no Python interpreter. open_model starts the child and returns its
// errors, for example a missing package.
absl::StatusOr<Platform> OpenTransformersPlatform(const options::Values& values);

}  // namespace penstock::shard
