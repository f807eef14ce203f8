#include "shard/backend/cpu/isa.h"

#include <cstdlib>
#include <optional>
#include <string>

namespace penstock::shard::cpu {
namespace {

constexpr Isa kAll[] = {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16};

std::optional<Isa> Widest() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return std::nullopt;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!avx512) return Isa::kAvx2;
  const bool pairs = __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vnni") &&
                     __builtin_cpu_supports("avx512vbmi");
  return pairs ? Isa::kAvx512Bf16 : Isa::kAvx512;
}

// On AMD's processors the dot product of bfloat16 pairs does twice the work of a float32 FMA.
// Intel's issue it half as often, so converting weights to float32 is faster. The maker decides,
// not a measurement: the same machine must give the same bits after every start.
Isa Fastest(Isa widest) {
  const bool half_rate = widest == Isa::kAvx512Bf16 && __builtin_cpu_is("intel");
  return half_rate ? Isa::kAvx512 : widest;
}

}  // namespace

std::string_view IsaName(Isa isa) {
  switch (isa) {
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512-bf16";
  }
  return "";
}

absl::StatusOr<Isa> ChooseIsa() {
  const std::optional<Isa> widest = Widest();
  if (!widest.has_value()) {
    return absl::FailedPreconditionError("this processor has no AVX2 and FMA");
  }
  const char* wanted = std::getenv("PENSTOCK_ISA");
  if (wanted == nullptr || *wanted == '\0') return Fastest(*widest);
  std::string names;
  for (Isa isa : kAll) {
    if (isa > *widest) break;
    if (IsaName(isa) == wanted) return isa;
    names.append(names.empty() ? "" : isa == *widest ? " or " : ", ").append(IsaName(isa));
  }
  return absl::InvalidArgumentError("PENSTOCK_ISA=" + std::string(wanted) + ": must be " + names +
                                    " on this processor");
}

}  // namespace penstock::shard::cpu
