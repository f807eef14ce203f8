#include "tests/gpu/bench/rates.h"

#include <chrono>
#include <functional>
#include <random>
#include <vector>

#include "common/status.h"
#include "tests/gpu/bench/read.h"

namespace penstock::shard::cuda {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{4} << 30;
constexpr int kRuns = 20;
constexpr std::uint32_t kSide = 8192;

// Seconds of one run: the mean of several after a first one that does not count.
absl::StatusOr<double> Seconds(Gpu& gpu, const std::function<absl::Status()>& enqueue) {
  PENSTOCK_RETURN_IF_ERROR(enqueue());
  PENSTOCK_RETURN_IF_ERROR(gpu.Synchronize());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) PENSTOCK_RETURN_IF_ERROR(enqueue());
  PENSTOCK_RETURN_IF_ERROR(gpu.Synchronize());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kRuns;
}

absl::StatusOr<GpuMemory> Zeros(Gpu& gpu, std::uint64_t bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::OnDevice(gpu, bytes));
  PENSTOCK_RETURN_IF_ERROR(gpu.Zero(memory.data(), bytes));
  return memory;
}

// Bfloat16 values between -2 and 2: products of zeros are faster than any model's.
absl::StatusOr<GpuMemory> RandomValues(Gpu& gpu, std::uint64_t bytes) {
  std::mt19937 random(1);
  std::vector<std::uint16_t> values(std::size_t{1} << 20);
  for (std::uint16_t& value : values) {
    // Sign and mantissa by chance, an exponent of 2^-8 to 2^0.
    const std::uint32_t bits = random();
    value = static_cast<std::uint16_t>((bits & 0x807f) | (119 + (bits >> 16) % 9) << 7);
  }
  PENSTOCK_ASSIGN_OR_RETURN(GpuMemory memory, GpuMemory::OnDevice(gpu, bytes));
  const std::size_t piece = values.size() * sizeof values[0];
  for (std::uint64_t at = 0; at + piece <= bytes; at += piece) {
    PENSTOCK_RETURN_IF_ERROR(gpu.Upload(memory.At(at), values.data(), piece));
  }
  return memory;
}

}  // namespace

absl::StatusOr<double> ReadBandwidth(Gpu& gpu) {
  PENSTOCK_ASSIGN_OR_RETURN(const GpuMemory memory, Zeros(gpu, kBytes));
  PENSTOCK_ASSIGN_OR_RETURN(const GpuMemory sink, Zeros(gpu, sizeof(float)));
  PENSTOCK_ASSIGN_OR_RETURN(const double seconds, Seconds(gpu, [&] {
                              return ReadAll(memory.data(), kBytes,
                                             static_cast<float*>(sink.data()), gpu.stream());
                            }));
  return static_cast<double>(kBytes) / seconds;
}

absl::StatusOr<double> CopyBandwidth(Gpu& gpu) {
  PENSTOCK_ASSIGN_OR_RETURN(const GpuMemory from, Zeros(gpu, kBytes));
  PENSTOCK_ASSIGN_OR_RETURN(const GpuMemory to, GpuMemory::OnDevice(gpu, kBytes));
  PENSTOCK_ASSIGN_OR_RETURN(const double seconds,
                            Seconds(gpu, [&] { return gpu.Copy(to.data(), from.data(), kBytes); }));
  return 2 * static_cast<double>(kBytes) / seconds;
}

absl::StatusOr<double> ProductRate(Gpu& gpu) {
  const std::uint64_t bytes = std::uint64_t{kSide} * kSide * DTypeBytes(DType::kBFloat16);
  PENSTOCK_ASSIGN_OR_RETURN(const GpuMemory in, RandomValues(gpu, bytes));
  PENSTOCK_ASSIGN_OR_RETURN(const GpuMemory weight, RandomValues(gpu, bytes));
  PENSTOCK_ASSIGN_OR_RETURN(const GpuMemory out, Zeros(gpu, bytes));
  const LinearArgs args{in.data(), weight.data(), nullptr, out.data(), kSide, kSide, kSide};
  PENSTOCK_RETURN_IF_ERROR(gpu.TuneLinear(args, DType::kBFloat16));
  PENSTOCK_ASSIGN_OR_RETURN(const double seconds,
                            Seconds(gpu, [&] { return gpu.Linear(args, DType::kBFloat16); }));
  return 2.0 * kSide * kSide * kSide / seconds;
}

}  // namespace penstock::shard::cuda
