// How a checkpoint stores a matrix: in a plain type, or quantised, as blocks with a scale each.
// The quantised forms are known here only; readers get rows of float32.
//
//   fp8    NAME F8_E4M3 [N, K] and NAME_scale_inv [ceil(N / rows), ceil(K / columns)] in F32, BF16
//          or F8_E8M0; a weight is value * scale. The block size is in config.json.
//   mxfp4  NAME_blocks U8 [N, K / 32, 16], two E2M1 values a byte, the lower half first, and
//          NAME_scales U8 [N, K / 32]: exponents of two, plus 127. A stack of matrices has one
//          dimension more.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "shard/weights/checkpoint.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

struct StoredMatrix {
  enum class Encoding : std::uint8_t { kPlain, kFp8, kMxfp4 };
  Encoding encoding = Encoding::kPlain;
  const CheckpointTensor* values = nullptr;  // null: the checkpoint does not have it
  const CheckpointTensor* scales = nullptr;  // unless kPlain; null: missing
};

// How the checkpoint stores the matrix of the part.
StoredMatrix FindStored(const Checkpoint& checkpoint, const WeightPart& part);

// Whether it has the shape and a type that the part asks for. Errors as in CheckParts.
absl::Status CheckStored(const Checkpoint& checkpoint, const WeightPlan& plan,
                         const WeightPart& part);

// `count` rows of a quantised part from `row`, each as part.columns.count floats. The part has
// passed CheckStored.
absl::Status ReadExpanded(const Checkpoint& checkpoint, const WeightPlan& plan,
                          const WeightPart& part, std::uint64_t row, std::uint64_t count,
                          std::vector<float>& out);

}  // namespace penstock::shard
