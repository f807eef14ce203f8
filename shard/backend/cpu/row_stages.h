// Stages that compute each element of a row, for rows [first, first + count).
#pragma once

#include <cstddef>

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/stages.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/model/program.h"

namespace penstock::shard::cpu {

struct RowRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

// `columns`: the width of the buffers of the stage.
void RunGroupNorm(const Stage& stage, const Kernels& kernels, const StepBuffers& buffers,
                  std::size_t columns, const RowRange& rows);
void RunMultiply(const Stage& stage, const Kernels& kernels, const StepBuffers& buffers,
                 const RowRange& rows);
void RunScale(const Stage& stage, const StepBuffers& buffers, std::size_t columns,
              const RowRange& rows);

}  // namespace penstock::shard::cpu
