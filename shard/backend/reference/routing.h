// The choice of experts (Routing in shard/model/program.h).
#pragma once

#include <cstdint>

#include "shard/backend/reference/aten.h"
#include "shard/model/program.h"

namespace penstock::shard {

struct Routes {
  at::Tensor weights;  // float [rows, experts]: 0 for experts that are not chosen
  at::Tensor WeightOf(std::int64_t expert) const { return weights.select(1, expert); }
};

// scores [rows, experts]; choice_bias and expert_scale [experts] or undefined.
Routes ChooseExperts(const at::Tensor& scores, const at::Tensor& choice_bias,
                     const at::Tensor& expert_scale, const Routing& routing);

}  // namespace penstock::shard
