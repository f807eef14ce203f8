#include "shard/backend/cpu/formats/format_kernels.h"
#include "shard/backend/cpu/formats/kernels/tables.h"

namespace penstock::shard::cpu {
namespace {

// The integers, hence the bits, of int4 and int8 are the same without VNNI.
FormatTable WithVnni(FormatTable table, bool bfloat16) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512vnni")) return table;
  table[FormatId::kInt8] = kAvx512VnniInt8;
  table[FormatId::kInt4] = kAvx512VnniInt4;
  if (bfloat16) table[FormatId::kInt16] = kAvx512VnniInt16;
  return table;
}

}  // namespace

FormatTable FindFormatKernels(Isa isa, DType weight) {
  const bool bfloat16 = weight == DType::kBFloat16;
  if (isa == Isa::kAvx2) return bfloat16 ? kAvx2BFloat16Formats : kAvx2Float32Formats;
  if (!bfloat16) return WithVnni(kAvx512Float32Formats, false);
  // Its products of bfloat16 pairs are as fast as those of int16.
  if (isa == Isa::kAvx512Bf16) return kAvx512DotBFloat16Formats;
  return WithVnni(kAvx512BFloat16Formats, true);
}

}  // namespace penstock::shard::cpu
