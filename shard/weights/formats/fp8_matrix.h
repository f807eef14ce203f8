// An FP8 matrix, which several formats have.
#pragma once

#include <cstdint>
#include <string>

#include "shard/weights/formats/stored_format.h"

namespace penstock::shard {

struct Fp8Scales {
  std::string name;              // of the tensor
  std::uint64_t block_rows = 0;  // rows and columns with one scale; 0: all of them
  std::uint64_t block_columns = 0;
};

// Checks values and scales. The checkpoint has the tensor of the part, in F8_E4M3.
absl::StatusOr<QuantizedMatrixPtr> OpenFp8(const Checkpoint& checkpoint, const WeightPart& part,
                                           const Fp8Scales& scales);

}  // namespace penstock::shard
