#include "tests/bench/cpu/machine_peaks.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "shard/backend/cpu/isa.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/work_split.h"
#include "shard/backend/cpu/weights/packed_matrix.h"

namespace penstock::shard::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kInner = 2048;  // of the product that shows the peak
constexpr std::size_t kOutputs = 2048;
constexpr std::size_t kStride = kInner + 32;  // as the backend's: whole pages would share sets
constexpr std::size_t kRows = kGemmRowBlock;

// Repeats the call for about a tenth of a second, at least three times. Returns the seconds of the
// fastest one.
double Best(const std::function<void()>& call) {
  double best = 1e9;
  const auto end = Clock::now() + std::chrono::milliseconds(100);
  for (int i = 0; i < 3 || Clock::now() < end; ++i) {
    const auto begin = Clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return best;
}

MemoryRegion Filled(std::size_t bytes, WorkerPool& pool) {
  auto region = MemoryRegion::Allocate(bytes);
  if (!region.ok()) std::abort();
  pool.Run([&](std::uint32_t thread) {
    const Share share = EvenShare(bytes, pool.threads(), thread);
    std::memset(region->data() + share.first, 0x3c, share.count);
  });
  return std::move(*region);
}

// One thread's sum over lines of 64 bytes, in `kStreams` parallel streams, with prefetching.
// Returning the sum keeps the loads.
template <std::size_t kStreams>
std::uint64_t SumLines(const std::byte* data, const Share& lines) {
  constexpr std::size_t kAhead = 2048;
  const std::size_t stride = lines.count / kStreams * 64;
  const std::byte* begin = data + lines.first * 64;
  std::uint64_t sums[8] = {};
  for (std::size_t offset = 0; offset < stride; offset += 64) {
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      const std::byte* line = begin + stream * stride + offset;
      __builtin_prefetch(line + kAhead);
      const auto* words = reinterpret_cast<const std::uint64_t*>(line);
      for (std::size_t i = 0; i < 8; ++i) sums[i] += words[i];
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}

constexpr int kRegisterRounds = 20000;
constexpr int kRegisterSums = 24;

// One thread repeats an instruction that adds products to each of 24 sums. Written out, because not
// every compiler keeps such an array in registers.
#define PENSTOCK_ONE(I, SUM) I " %%zmm30, %%zmm31, %%zmm" SUM "\n\t"
#define PENSTOCK_SIX(I, A, B, C, D, E, F) \
  PENSTOCK_ONE(I, A)                      \
  PENSTOCK_ONE(I, B)                      \
  PENSTOCK_ONE(I, C) PENSTOCK_ONE(I, D) PENSTOCK_ONE(I, E) PENSTOCK_ONE(I, F)
#define PENSTOCK_ROUNDS(NAME, I, TARGET)                                                          \
  __attribute__((target(TARGET))) void NAME() {                                                   \
    for (int round = 0; round < kRegisterRounds; ++round) {                                       \
      __asm__ volatile(                                                                           \
          "vpxord %%zmm30, %%zmm30, %%zmm30\n\t"                                                  \
          "vpxord %%zmm31, %%zmm31, %%zmm31\n\t" PENSTOCK_SIX(I, "0", "1", "2", "3", "4", "5")    \
              PENSTOCK_SIX(I, "6", "7", "8", "9", "10", "11")                                     \
                  PENSTOCK_SIX(I, "12", "13", "14", "15", "16", "17")                             \
                      PENSTOCK_SIX(I, "18", "19", "20", "21", "22", "23")::                       \
                          : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",       \
                            "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", \
                            "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",        \
                            "xmm23", "xmm30", "xmm31");                                           \
    }                                                                                             \
  }
PENSTOCK_ROUNDS(MultiplyFloats, "vfmadd231ps", "avx512f")
PENSTOCK_ROUNDS(MultiplyPairs, "vdpbf16ps", "avx512f,avx512bf16")
PENSTOCK_ROUNDS(MultiplyShorts, "vpdpwssd", "avx512f,avx512vnni")
PENSTOCK_ROUNDS(MultiplyBytes, "vpdpbusd", "avx512f,avx512vnni")
#undef PENSTOCK_ROUNDS
#undef PENSTOCK_SIX
#undef PENSTOCK_ONE

struct RegisterRounds {
  void (*run)();
  double operations;  // of an instruction
};

RegisterRounds RoundsOf(Isa isa, FormatId format) {
  __builtin_cpu_init();
  const bool integers =
      format == FormatId::kInt4 || format == FormatId::kInt8 || format == FormatId::kInt16;
  if (integers && !__builtin_cpu_supports("avx512vnni")) return {nullptr, 0};
  switch (format) {
    case FormatId::kInt4:
    case FormatId::kInt8:
      return {MultiplyBytes, 128};
    case FormatId::kInt16:
      return {MultiplyShorts, 64};
    case FormatId::kPlain:
    case FormatId::kCompressed:
      break;
  }
  if (isa == Isa::kAvx512Bf16) return {MultiplyPairs, 64};
  return {MultiplyFloats, 32};
}

}  // namespace

MachinePeaks::MachinePeaks(std::uint32_t threads, std::size_t most_bytes)
    : pool_(threads), memory_(Filled(most_bytes, pool_)) {}

double MachinePeaks::ReadBandwidth(std::size_t bytes) {
  bytes = std::min(bytes, memory_.bytes());
  std::vector<std::uint64_t> sums(pool_.threads() * 8);
  const auto seconds = [&](auto sum_lines) {
    return Best([&] {
      pool_.Run([&](std::uint32_t thread) {
        const Share lines = EvenShare(bytes / 64, pool_.threads(), thread);
        sums[thread * 8] += sum_lines(memory_.data(), lines);
      });
    });
  };
  const double best = std::min(seconds(SumLines<1>), seconds(SumLines<4>));
  return static_cast<double>(bytes) / best / 1e9;
}

double MachinePeaks::GemmPeak(DType dtype, FormatId format) {
  const auto isa = ChooseIsa();
  const Kernels* kernels = isa.ok() ? FindKernels(*isa, dtype) : nullptr;
  if (kernels == nullptr) return 0.0;
  // The GEMM of compressed weights reaches that of plain ones, and random bytes are not compressed.
  if (format == FormatId::kCompressed) format = FormatId::kPlain;
  const FormatKernels& of_format = kernels->formats[format];
  const PackedMatrix matrix({kOutputs, kInner}, *kernels, FormatOf(format));
  const MemoryRegion weights = Filled(matrix.Bytes() + 4096, pool_);
  const MemoryRegion input = Filled(kRows * kStride * sizeof(float), pool_);
  const std::vector<IntegerGroup> groups(kRows * (kInner / of_format.group), {0.01f, -5});
  const std::vector<float> scales(matrix.PaddedColumns(), 0.01f);
  std::vector<float> out(kRows * kOutputs);
  std::vector<std::vector<float>> scratch(pool_.threads(), std::vector<float>(kGemmScratch));
  GemmArgs whole;
  whole.input = input.data();
  whole.input_stride =
      of_format.quantize == nullptr ? kStride : kStride / of_format.pack * of_format.step_bytes;
  whole.groups = groups.data();
  whole.group_stride = kInner / of_format.group;
  if (FormatOf(format).has_column_scales()) whole.scales = scales.data();
  whole.rows = kRows;
  whole.weights = weights.data();
  whole.steps = matrix.steps();
  whole.out = out.data();
  whole.out_stride = whole.out_columns = kOutputs;
  const double seconds = Best([&] {
    pool_.Run([&](std::uint32_t thread) {
      const Share columns = EvenShare(matrix.units(), pool_.threads(), thread);
      GemmArgs args = whole;
      args.first_vector = columns.first;
      args.vectors = columns.count;
      args.scratch = scratch[thread].data();
      of_format.gemm(args);
    });
  });
  return 2.0 * kRows * kInner * kOutputs / seconds / 1e9;
}

double MachinePeaks::RegisterPeak(FormatId format) {
  const auto isa = ChooseIsa();
  if (!isa.ok() || *isa == Isa::kAvx2) return 0.0;
  const RegisterRounds rounds = RoundsOf(*isa, format);
  if (rounds.run == nullptr) return 0.0;
  const double seconds = Best([&] { pool_.Run([&](std::uint32_t) { rounds.run(); }); });
  return rounds.operations * kRegisterRounds * kRegisterSums * pool_.threads() / seconds / 1e9;
}

}  // namespace penstock::shard::cpu
