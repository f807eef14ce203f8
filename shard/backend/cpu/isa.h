// The instruction set of the kernels: the fastest of the processor, at most that of the environment
// variable PENSTOCK_ISA (avx2, avx512, avx512-bf16).
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string_view>

namespace penstock::shard::cpu {

enum class Isa : std::uint8_t {
  kAvx2,        // with FMA and F16C; the backend needs it
  kAvx512,      // F, BW, DQ, VL
  kAvx512Bf16,  // and VBMI, dot products of bfloat16 pairs and of int8 fours
};

std::string_view IsaName(Isa isa);

// FailedPrecondition on a processor without AVX2 and FMA; InvalidArgument for a PENSTOCK_ISA that
// is unknown or more than the processor has.
absl::StatusOr<Isa> ChooseIsa();

}  // namespace penstock::shard::cpu
