#include "shard/backend/cpu/kernels/tables.h"

namespace penstock::shard::cpu {
namespace {

// Of int8 the integers, hence the bits, are the same without it.
Kernels WithVnni(Kernels kernels) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512vnni")) return kernels;
  kernels.int8 = kAvx512VnniInt8;
  if (kernels.weight != DType::kBFloat16) return kernels;
  kernels.int16 = kAvx512VnniInt16;
  kernels.pack_int16 = PackAvx512Int16;
  return kernels;
}

const Kernels& Avx512Float32() {
  static const Kernels kernels = WithVnni(kAvx512Float32);
  return kernels;
}

const Kernels& Avx512BFloat16() {
  static const Kernels kernels = WithVnni(kAvx512BFloat16);
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
