#include "tests/bench/cpu/machine_peaks.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "shard/backend/cpu/isa.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/packed_matrix.h"
#include "shard/backend/cpu/work_split.h"

namespace penstock::shard::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kInner = 2048;  // of the product that shows the peak
constexpr std::size_t kOutputs = 2048;
constexpr std::size_t kStride = kInner + 32;  // as the backend's: whole pages would share sets
constexpr std::size_t kRows = kGemmRowBlock;

// Seconds of the fastest call within about a tenth of a second, of three at least.
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

// One thread's sum over lines of 64 bytes, in `kStreams` streams side by side, asking for lines
// ahead; the result keeps the loads alive.
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

// One thread's rounds; both give 16 products a sum, bfloat16 pairs twice that.
__attribute__((target("avx512f,avx512bf16"))) float MultiplyPairs() {
  __m512 sums[kRegisterSums];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const __m512bh left = (__m512bh)_mm512_set1_epi32(0x3c003c00);
  __m512bh right = (__m512bh)_mm512_set1_epi32(0x3c013c01);
  for (int round = 0; round < kRegisterRounds; ++round) {
    __asm__ volatile("" : "+v"(right));  // or one round is computed for all
#pragma GCC unroll 24
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, left, right);
  }
  __m512 total = _mm512_setzero_ps();
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  float values[16];
  _mm512_storeu_ps(values, total);
  return values[0];
}

__attribute__((target("avx512f"))) float MultiplyFloats() {
  __m512 sums[kRegisterSums];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  const __m512 left = _mm512_set1_ps(0.5f);
  __m512 right = _mm512_set1_ps(0.25f);
  for (int round = 0; round < kRegisterRounds; ++round) {
    __asm__ volatile("" : "+v"(right));
#pragma GCC unroll 24
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(left, right, sum);
  }
  __m512 total = _mm512_setzero_ps();
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  float values[16];
  _mm512_storeu_ps(values, total);
  return values[0];
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

double MachinePeaks::ProductPeak(DType dtype, bool int8) {
  const auto isa = ChooseIsa();
  const Kernels* kernels = isa.ok() ? FindKernels(*isa, dtype) : nullptr;
  if (kernels == nullptr) return 0.0;
  const MatrixShape shape{kOutputs, kInner};
  const PackedMatrix matrix = int8 ? PackedMatrix::Int8(shape, kernels->layout, kernels->weight)
                                   : PackedMatrix(shape, kernels->layout, kernels->weight);
  const MemoryRegion weights = Filled(matrix.Bytes() + 4096, pool_);
  const MemoryRegion input = Filled(kRows * kStride * sizeof(float), pool_);
  const std::vector<Int8Group> groups(kRows * (kInner / kInt8Group), {0.01f, -5});
  const std::vector<float> scales(matrix.PaddedColumns(), 0.01f);
  std::vector<float> out(kRows * kOutputs);
  std::vector<std::vector<float>> scratch(pool_.threads(), std::vector<float>(kGemmScratch));
  GemmArgs whole;
  whole.input = input.data();
  whole.input_stride = int8 ? kStride / kInt8Pack * kernels->int8.step_bytes : kStride;
  whole.groups = groups.data();
  whole.group_stride = kInner / kInt8Group;
  whole.scales = scales.data();
  whole.rows = kRows;
  whole.weights = weights.data();
  whole.steps = matrix.steps();
  whole.out = out.data();
  whole.out_stride = whole.out_columns = kOutputs;
  const auto gemm = int8 ? kernels->int8.gemm : kernels->gemm;
  const double seconds = Best([&] {
    pool_.Run([&](std::uint32_t thread) {
      const Share columns = EvenShare(matrix.units(), pool_.threads(), thread);
      GemmArgs args = whole;
      args.first_vector = columns.first;
      args.vectors = columns.count;
      args.scratch = scratch[thread].data();
      gemm(args);
    });
  });
  return 2.0 * kRows * kInner * kOutputs / seconds / 1e9;
}

double MachinePeaks::RegisterPeak() {
  const auto isa = ChooseIsa();
  if (!isa.ok() || *isa == Isa::kAvx2) return 0.0;
  const bool pairs = *isa == Isa::kAvx512Bf16;
  std::vector<float> sums(pool_.threads() * 16);
  const double seconds = Best([&] {
    pool_.Run([&](std::uint32_t thread) {
      sums[thread * 16] = pairs ? MultiplyPairs() : MultiplyFloats();
    });
  });
  const double operations = pairs ? 64.0 : 32.0;  // of an instruction
  return operations * kRegisterRounds * kRegisterSums * pool_.threads() / seconds / 1e9;
}

}  // namespace penstock::shard::cpu
