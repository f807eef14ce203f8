// The kernels of each file that is compiled for an instruction set.
#pragma once

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {

extern const Kernels kAvx2Float32;
extern const Kernels kAvx2BFloat16;
extern const Kernels kAvx512Float32;
extern const Kernels kAvx512BFloat16;
extern const Kernels kAvx512DotBFloat16;

}  // namespace penstock::shard::cpu
