// Gated delta nets of one rank: the operation, and weights that are not those of a linear layer.
#pragma once

#include <string>

#include "shard/model/model_spec.h"
#include "shard/model/program.h"
#include "shard/model/rank_share.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

// With all sizes, without weights and the index of its state.
DeltaNetOp DeltaOperation(const DeltaSpec& delta, const RankShare& part, float eps);

// One number for each value head.
WeightTarget DeltaHeads(const std::string& tensor, const DeltaSpec& delta, const RankShare& part);

// The convolution: the channels of the queries, those of the keys, then those of the values.
WeightTarget DeltaConvolution(const std::string& tensor, const DeltaSpec& delta,
                              const RankShare& part);

}  // namespace penstock::shard
