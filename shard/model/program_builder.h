// ModelSpec -> Program and WeightPlan for one rank. The two are built in one walk, so an operation
// and the tensors that feed it cannot disagree.
#pragma once

#include "shard/model/model_spec.h"
#include "shard/model/partition.h"
#include "shard/model/program.h"
#include "shard/weights/weight_plan.h"

namespace penstock::shard {

struct BuiltProgram {
  Program program;
  WeightPlan weights;
};

BuiltProgram BuildProgram(const ModelSpec& spec, const Partition& part);

}  // namespace penstock::shard
