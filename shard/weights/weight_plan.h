// The weights that one rank keeps of a checkpoint: matrices and vectors, each put together from
// slices of stored tensors. shard/model builds the plan; LoadWeights carries it out.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/dtype.h"
#include "shard/weights/checkpoint.h"

namespace penstock::shard {

class StoredFormat;

struct Range {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

// rows x columns of a stored tensor, placed at `target_row` of the target. A stored vector of n
// values is [n] with rows {first, count} and columns {0, 1}. A row of a tensor of three dimensions,
// as the weights of a convolution, holds the last two. A matrix may be stored quantised
// (stored_matrix.h); then the format says whether it may be transposed.
struct WeightPart {
  std::string tensor;
  std::vector<std::uint64_t> stored_shape;  // what the file must have
  Range rows;
  Range columns;
  std::uint64_t target_row = 0;
  bool transposed = false;  // the file has columns x rows; all else is as said
  // The file has a stack of `stack` such matrices or vectors, and this is one of them. 0: no stack.
  std::uint64_t stack = 0;
  std::uint64_t matrix = 0;
  // Row i is stored row rows.first + i * row_step.
  std::uint64_t row_step = 1;
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
  // Tensors that a checkpoint may hold and that no target needs.
  std::vector<std::string> ignored_suffixes;
  std::vector<std::string> ignored_prefixes;
  std::shared_ptr<const StoredFormat> format;  // of quantised matrices; null: there are none

  std::uint64_t Elements() const;
  std::uint64_t Bytes(DType dtype) const;  // as LoadWeights allocates them, with alignment
};

// Checks that every part exists with the stated shape in a type that Penstock loads. NotFound and
// InvalidArgument name file, tensor, and both shapes.
absl::Status CheckTarget(const Checkpoint& checkpoint, const WeightPlan& plan,
                         const WeightTarget& target);
absl::Status CheckParts(const Checkpoint& checkpoint, const WeightPlan& plan);

// The matrices that the checkpoint stores quantised.
struct QuantizedCount {
  std::uint64_t matrices = 0;
  std::uint64_t bytes = 0;     // of their tensors
  std::uint64_t elements = 0;  // of the matrices
};

// The plan, which is that of a single rank, must have passed CheckParts.
absl::StatusOr<QuantizedCount> CountQuantized(const Checkpoint& checkpoint, const WeightPlan& plan);

// Checks that `plan`, which is that of a single rank, uses or ignores every tensor of the
// checkpoint.
absl::Status CheckAllConsumed(const Checkpoint& checkpoint, const WeightPlan& plan);

}  // namespace penstock::shard
