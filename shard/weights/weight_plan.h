// What one rank keeps of a checkpoint: packed matrices and vectors, each put together from slices
// of stored tensors. Built by shard/model from the ModelSpec, carried out by LoadWeights.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/dtype.h"
#include "shard/weights/checkpoint.h"

namespace penstock::shard {

struct Range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// rows x columns of a stored tensor, placed at `target_row` of the target. A stored vector of n
// values is [n] with rows {first, count} and columns {0, 1}.
struct WeightPart {
  std::string tensor;
  std::vector<std::uint64_t> stored_shape;  // what the file must have
  Range rows;
  Range columns;
  std::uint64_t target_row = 0;
};

struct WeightTarget {
  std::string name;  // for messages: "layers.3.qkv"
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  bool vector = false;            // [rows] instead of [rows, columns]; columns is 1
  std::vector<WeightPart> parts;  // rows that no part covers are zero (padded vocabulary)
  std::uint64_t Elements() const { return rows * columns; }
};

struct WeightPlan {
  std::vector<WeightTarget> targets;

  std::uint64_t Elements() const;
  std::uint64_t Bytes(DType dtype) const;  // as LoadWeights allocates them, with alignment
};

// Every part exists with the stated shape in a type that Penstock loads. NotFound or
// InvalidArgument names file, tensor, and both shapes.
absl::Status CheckParts(const Checkpoint& checkpoint, const WeightPlan& plan);

// Every tensor of the checkpoint is used by a part of `plan` (that of a single rank, which uses
// all), or is known to hold nothing that inference needs: `ignored` names, buffers of old files.
absl::Status CheckAllConsumed(const Checkpoint& checkpoint, const WeightPlan& plan,
                              const std::set<std::string>& ignored);

}  // namespace penstock::shard
