// Stages that compute each element of a row, for rows [first, first + count).
#pragma once

#include <cstddef>
#include <span>

#include "shard/backend/backend.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/row_places.h"
#include "shard/backend/cpu/stages.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/backend/cpu/weights/weight_store.h"
#include "shard/model/program.h"

namespace penstock::shard::cpu {

struct RowRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Rows of the embedding. Those of tokens that other ranks have are 0.
void RunEmbed(const Stage& stage, const Program& program, const WeightStore& weights,
              const StepBuffers& buffers, std::span<const TokenId> tokens, const RowRange& rows);
// Adds learned positions. `scratch`: one row.
void RunPositions(const Stage& stage, const WeightStore& weights, const StepBuffers& buffers,
                  const RowPlaces& places, std::size_t columns, float* scratch,
                  const RowRange& rows);
// `columns`: the width of the buffers of the stage.
void RunGroupNorm(const Stage& stage, const Kernels& kernels, const StepBuffers& buffers,
                  std::size_t columns, const RowRange& rows);
void RunMultiply(const Stage& stage, const Kernels& kernels, const StepBuffers& buffers,
                 const RowRange& rows);
// The sums of squares have a fixed shape, as those of norms.
void RunSquares(const SquaresOp& op, const Kernels& kernels, const StepBuffers& buffers,
                const RowRange& rows);
void RunWidthNorm(const Stage& stage, const StepBuffers& buffers, const RowRange& rows);
void RunClamp(const ClampOp& op, const StepBuffers& buffers, const RowRange& rows);
// Overwrites the input.
void RunXielu(const Stage& stage, const Kernels& kernels, const StepBuffers& buffers,
              const RowRange& rows);
void RunScale(const Stage& stage, const StepBuffers& buffers, std::size_t columns,
              const RowRange& rows);

}  // namespace penstock::shard::cpu
