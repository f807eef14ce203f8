// A LoRA adapter as one rank holds it: low-rank additions to the matrices of linear operations.
//
//   y = W x + sum over the modules of scale * up (down x)
//
// Ranks divide an adapter as they divide the base matrix. Where rows are divided, a rank has those
// rows of `up`; where columns are, those columns of `down`, and the sum over the ranks that follows
// the base product joins the parts.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "shard/model/program.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

// Most ranks of all modules of one target together.
inline constexpr std::uint32_t kMostTargetRanks = 1024;

// What an adapter adds to rows of one target of the WeightPlan.
struct LoraModule {
  std::uint32_t rank = 0;
  float scale = 1.0f;
  std::vector<float> down;          // [rank, columns of the target]
  std::vector<std::uint32_t> rows;  // of the target
  std::vector<float> up;            // [rows.size(), rank]
};

struct LoraDelta {
  WeightIndex target = kNoWeight;
  std::uint64_t columns = 0;
  std::vector<LoraModule> modules;
  std::uint32_t Ranks() const;
};

struct LoraAdapter {
  std::vector<LoraDelta> deltas;  // of different targets, in ascending order
  bool bfloat16 = false;          // the files hold bfloat16, so the values have its precision
  std::uint32_t rank = 0;         // the largest of a module

  std::uint64_t Elements() const;
};

// Reads adapter_config.json and adapter_model.safetensors, and checks them against the base model.
// Errors are one line, which begins with the folder, and the same on every rank.
absl::StatusOr<LoraAdapter> ReadLoraAdapter(const std::string& folder, const Program& program,
                                            const WeightPlan& plan);

}  // namespace penstock::shard
