// The weights of experts: how the matrices of one expert on one rank are put together from the
// tensors of a checkpoint. Each rank has some columns of every expert.
#pragma once

#include <cstdint>
#include <string>

#include "shard/weights/weight_plan.h"

namespace penstock::shard {

struct ExpertSizes {
  std::uint64_t experts = 0;
  std::uint64_t hidden = 0;
  std::uint64_t width = 0;  // rows of gate and of up, of all ranks
  Range mine;               // those of this rank
};

struct ExpertTargets {
  WeightTarget gate_up;  // gate rows, then up rows
  WeightTarget down;
};

// Three matrices "`experts`.`index`.`gate`.weight", `up` and `down`. `experts` is a whole name.
struct ExpertNames {
  std::string experts;
  std::string gate;
  std::string up;
  std::string down;
};
ExpertTargets SingleExpert(const ExpertNames& names, const ExpertSizes& sizes, std::uint32_t index);

// Two stacks of matrices, [experts, 2 * width, hidden] with gate rows first and
// [experts, hidden, width]. Names are whole.
struct ExpertStacks {
  std::string gate_up;
  std::string down;
  bool transposed = false;   // matrices are stored as [inputs, outputs]
  bool alternating = false;  // gate and up rows alternate
};
ExpertTargets StackedExpert(const std::string& experts, const ExpertStacks& stacks,
                            const ExpertSizes& sizes, std::uint32_t index);

// Three matrices [experts * width, hidden] with the rows of one expert after those of the other.
// Those of `down` are stored as [inputs, outputs]. Names are whole.
struct ExpertRows {
  std::string gate;
  std::string up;
  std::string down;
};
ExpertTargets ExpertOfRows(const ExpertRows& names, const ExpertSizes& sizes, std::uint32_t index);

// The biases of alternating stacks: vectors of the stacks "`experts`.gate_up_proj_bias" and
// "`experts`.down_proj_bias".
ExpertTargets InterleavedBiases(const std::string& experts, const ExpertSizes& sizes,
                                std::uint32_t index);

}  // namespace penstock::shard
