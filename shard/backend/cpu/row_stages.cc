#include "shard/backend/cpu/row_stages.h"

namespace penstock::shard::cpu {

void RunGroupNorm(const Stage& stage, const Kernels& kernels, const StepBuffers& buffers,
                  std::size_t columns, const RowRange& rows) {
  const GroupNormOp& op = *stage.groups;
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    float* const in = buffers.View(stage.in).Floats(row);
    float* const out = buffers.View(stage.out).Floats(row);
    for (std::size_t group = 0; group < columns; group += op.size) {
      kernels.head_norm({.input = in + group,
                         .weight = stage.norm_weight,
                         .size = op.size,
                         .eps = op.eps,
                         .out = in + group});
    }
    for (std::size_t i = 0; i < columns; ++i) out[i] = (in[i] + out[i]) * op.scale;
  }
}

void RunMultiply(const Stage& stage, const Kernels& kernels, const StepBuffers& buffers,
                 const RowRange& rows) {
  const MultiplyOp& op = *stage.multiply;
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    kernels.multiply_activations(buffers.View(stage.out).Row(row),
                                 buffers.View(stage.in).Floats(row) + op.first, op.width);
  }
}

void RunScale(const Stage& stage, const StepBuffers& buffers, std::size_t columns,
              const RowRange& rows) {
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    float* const x = buffers.View(stage.out).Floats(row);
    for (std::size_t i = 0; i < columns; ++i) x[i] *= *stage.norm_weight;
  }
}

}  // namespace penstock::shard::cpu
