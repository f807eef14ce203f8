#include "shard/backend/cpu/kernels/tables.h"

namespace penstock::shard::cpu {

const Kernels* FindKernels(Isa isa, DType weight) {
  if (weight == DType::kFloat32) return isa == Isa::kAvx2 ? &kAvx2Float32 : &kAvx512Float32;
  if (weight != DType::kBFloat16) return nullptr;
  switch (isa) {
    case Isa::kAvx2:
      return &kAvx2BFloat16;
    case Isa::kAvx512:
      return &kAvx512BFloat16;
    case Isa::kAvx512Bf16:
      return &kAvx512DotBFloat16;
  }
  return nullptr;
}

}  // namespace penstock::shard::cpu
