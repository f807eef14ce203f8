// Gates of activations.
//
// Threads: each has its own share of the rows.
#pragma once

#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/step_buffers.h"
#include "shard/backend/cpu/threads/work_split.h"
#include "shard/model/program.h"

namespace penstock::shard::cpu {

void GateRows(const GateRowsOp& op, const Program& program, const Kernels& kernels,
              const StepBuffers& buffers, const Share& rows);
void Gate(const GateOp& op, const Kernels& kernels, const StepBuffers& buffers, const Share& rows);

}  // namespace penstock::shard::cpu
