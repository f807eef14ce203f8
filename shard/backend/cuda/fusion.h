// Neighbouring ops of a program that one kernel computes for few rows (SkinnyLinear): a product and
// the gate that reads it. Fewer kernels leave less time between them.
#pragma once

#include <span>

#include "shard/model/program.h"

namespace penstock::shard::cuda {

// The gate that follows the product which `ops` begins with, if both can be computed together: the
// output of the product is then not written, and no later op may read it. Else null.
const GatedActivationOp* GateToFuse(std::span<const Op> ops);

}  // namespace penstock::shard::cuda
