#include "shard/backend/cpu/delta/gates.h"

#include <cmath>

namespace penstock::shard::cpu {

void GateRows(const GateRowsOp& op, const Program& program, const Kernels& kernels,
              const StepBuffers& buffers, const Share& rows) {
  const BufferView& gate = buffers.View(op.gate);
  const BufferView& out = buffers.View(op.buffer);
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    const float factor = 1.0f / (1.0f + std::exp(-gate.Floats(row)[0]));
    kernels.scale_activations(out.Row(row), program.Width(op.buffer), factor);
  }
}

void Gate(const GateOp& op, const Kernels& kernels, const StepBuffers& buffers, const Share& rows) {
  const BufferView& gate = buffers.View(op.gate);
  const BufferView& out = buffers.View(op.buffer);
  for (std::size_t row = rows.first; row < rows.first + rows.count; ++row) {
    kernels.gate_activations(out.Row(row), gate.Floats(row), op.width);
  }
}

}  // namespace penstock::shard::cpu
