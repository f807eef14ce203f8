// A mixture of experts (ExpertsOp in shard/model/program.h).
#pragma once

#include <cstdint>
#include <functional>

#include "shard/backend/reference/aten.h"
#include "shard/model/program.h"

namespace penstock::shard {

// A weight of the program; undefined for kNoWeight.
using WeightOf = std::function<const at::Tensor&(WeightIndex index)>;

// in and out: [rows, hidden]; scores: [rows, experts]. A row has the same bits in any batch:
// products are made in tiles of rows, and the experts of a row are added in ascending order, in
// float32.
void RunExperts(const ExpertsOp& op, const at::Tensor& in, const at::Tensor& scores,
                const WeightOf& weight, at::Tensor out);

}  // namespace penstock::shard
