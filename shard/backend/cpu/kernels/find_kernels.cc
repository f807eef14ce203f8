#include "shard/backend/cpu/kernels/tables.h"

namespace penstock::shard::cpu {
namespace {

const Kernels* TableFor(Isa isa, DType weight) {
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

template <Isa kIsa, DType kWeight>
const Kernels* WithFormats() {
  static const Kernels kernels = [] {
    Kernels table = *TableFor(kIsa, kWeight);
    table.formats = FindFormatKernels(kIsa, kWeight);
    return table;
  }();
  return &kernels;
}

template <DType kWeight>
const Kernels* KernelsOf(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return WithFormats<Isa::kAvx2, kWeight>();
    case Isa::kAvx512:
      return WithFormats<Isa::kAvx512, kWeight>();
    case Isa::kAvx512Bf16:
      return WithFormats<Isa::kAvx512Bf16, kWeight>();
  }
  return nullptr;
}

}  // namespace

const Kernels* FindKernels(Isa isa, DType weight) {
  if (weight == DType::kFloat32) return KernelsOf<DType::kFloat32>(isa);
  return weight == DType::kBFloat16 ? KernelsOf<DType::kBFloat16>(isa) : nullptr;
}

}  // namespace penstock::shard::cpu
