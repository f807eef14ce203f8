// Where each file that is compiled for an instruction set puts its kernels.
#pragma once

#include "shard/backend/cpu/kernels.h"

namespace penstock::shard::cpu {

extern const Kernels kAvx2Float32;
extern const Kernels kAvx2BFloat16;
extern const Kernels kAvx512Float32;
extern const Kernels kAvx512BFloat16;
extern const Kernels kAvx512DotBFloat16;
// With activations of float32.
extern const IntegerKernels kAvx512VnniInt8;
extern const IntegerKernels kAvx512VnniInt16;
void PackAvx512Int16(const PackInt16Args& args);

}  // namespace penstock::shard::cpu
