// Backend of --engine transformers: a Python child (python_child.h) computes the steps.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>

#include "shard/backend/backend.h"
#include "shard/backend/transformers/python_child.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/model/program.h"
#include "shard/weights/loader.h"

namespace penstock::shard::transformers {

struct TransformersOptions {
  std::shared_ptr<PythonChild> child;  // it has described the model
  Program program;                     // of that description
  PagedLayout layout;                  // an estimate of the child's caches
  std::uint64_t weight_bytes = 0;      // an estimate, for the progress
};

// Loads the weights and runs the self check. InvalidArgument if transformers cannot load the model
// or cannot compute a short text.
absl::StatusOr<std::unique_ptr<Backend>> MakeTransformersBackend(TransformersOptions options,
                                                                 const LoadProgress& progress);

}  // namespace penstock::shard::transformers
