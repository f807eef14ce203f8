// How a checkpoint stores the matrix of a part: in a plain type, or quantised in the format of the
// plan (formats/stored_format.h).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>

#include "shard/weights/checkpoint.h"
#include "shard/weights/formats/stored_format.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

// The matrix of the part, checked; null if it is stored in a plain type or missing. Errors as in
// CheckParts.
absl::StatusOr<QuantizedMatrixPtr> OpenQuantized(const Checkpoint& checkpoint,
                                                 const WeightPlan& plan, const WeightPart& part);

// Whether it has the shape and a type that the part asks for. Errors as in CheckParts.
absl::Status CheckStored(const Checkpoint& checkpoint, const WeightPlan& plan,
                         const WeightPart& part);

// `count` rows of the part from `row`, each as part.columns.count floats. `matrix` is that of the
// part.
absl::Status ReadExpanded(const QuantizedMatrix& matrix, const WeightPart& part, std::uint64_t row,
                          std::uint64_t count, float* out);

}  // namespace penstock::shard
