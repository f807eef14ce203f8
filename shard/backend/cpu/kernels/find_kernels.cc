#include "shard/backend/cpu/kernels/tables.h"

namespace penstock::shard::cpu {
namespace {

// Bits do not depend on it: the integers are the same.
Kernels WithFastestInt8(Kernels kernels) {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vnni")) kernels.int8 = kAvx512VnniInt8;
  return kernels;
}

const Kernels& Avx512Float32() {
  static const Kernels kernels = WithFastestInt8(kAvx512Float32);
  return kernels;
}

const Kernels& Avx512BFloat16() {
  static const Kernels kernels = WithFastestInt8(kAvx512BFloat16);
  return kernels;
}

}  // namespace

const Kernels* FindKernels(Isa isa, DType weight) {
  if (weight == DType::kFloat32) return isa == Isa::kAvx2 ? &kAvx2Float32 : &Avx512Float32();
  if (weight != DType::kBFloat16) return nullptr;
  switch (isa) {
    case Isa::kAvx2:
      return &kAvx2BFloat16;
    case Isa::kAvx512:
      return &Avx512BFloat16();
    case Isa::kAvx512Bf16:
      return &kAvx512DotBFloat16;
  }
  return nullptr;
}

}  // namespace penstock::shard::cpu
