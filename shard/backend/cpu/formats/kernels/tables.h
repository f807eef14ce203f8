// The format kernels of each instruction set, and how to build their tables.
#pragma once

#include <cstddef>

#include "shard/backend/cpu/formats/format_kernels.h"

namespace penstock::shard::cpu {

extern const FormatTable kAvx2Float32Formats;
extern const FormatTable kAvx2BFloat16Formats;
extern const FormatTable kAvx512Float32Formats;
extern const FormatTable kAvx512BFloat16Formats;
extern const FormatTable kAvx512DotBFloat16Formats;
// For processors with AVX512_VNNI, with activations of float32.
extern const FormatKernels kAvx512VnniInt4;
extern const FormatKernels kAvx512VnniInt8;
extern const FormatKernels kAvx512VnniInt16;

}  // namespace penstock::shard::cpu
