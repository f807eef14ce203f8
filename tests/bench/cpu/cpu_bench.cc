// Rates of the CPU backend's kernels, and the read bandwidth of the same seconds. Prints JSON.
//
//   penstock-cpu-bench [threads]
//
// Each number is the best of several runs of about a tenth of a second in all. Read bandwidth is
// measured before and after; shares are of the better one.
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/json_text.h"
#include "shard/backend/cpu/isa.h"
#include "shard/backend/cpu/kernels.h"
#include "shard/backend/cpu/threads/work_split.h"
#include "shard/backend/cpu/threads/worker_pool.h"
#include "shard/backend/cpu/weights/packed_matrix.h"
#include "shard/parallel/shm_communicator.h"
#include "shard/sampling/sampler.h"
#include "shard/weights/memory_region.h"
#include "tests/bench/usage.h"

namespace penstock::shard::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds of the fastest call within the time.
double Best(const std::function<void()>& call) {
  double best = 1e9;
  const auto end = Clock::now() + std::chrono::milliseconds(120);
  do {
    const auto begin = Clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - begin).count());
  } while (Clock::now() < end);
  return best;
}

MemoryRegion Filled(std::size_t bytes) {
  auto region = MemoryRegion::Allocate(bytes);
  if (!region.ok()) std::abort();
  std::memset(region->data(), 0x3c, bytes);
  return std::move(*region);
}

double ReadBandwidth(WorkerPool& pool) {
  static const MemoryRegion memory = Filled(std::size_t{512} << 20);
  std::vector<std::uint64_t> sums(pool.threads() * 8);
  const auto* words = reinterpret_cast<const std::uint64_t*>(memory.data());
  const double seconds = Best([&] {
    pool.Run([&](std::uint32_t thread) {
      const Share share = EvenShare(memory.bytes() / 64, pool.threads(), thread);
      std::uint64_t sum[8] = {};
      for (std::size_t line = share.first; line < share.first + share.count; ++line) {
        for (std::size_t i = 0; i < 8; ++i) sum[i] += words[line * 8 + i];
      }
      for (std::uint64_t part : sum) sums[thread * 8] += part;
    });
  });
  return static_cast<double>(memory.bytes()) / seconds / 1e9;
}

struct BenchShape {
  const char* name;
  std::size_t inner, outputs;
};

class GemmBench {
 public:
  GemmBench(const Kernels& kernels, const WeightFormat& format, WorkerPool& pool)
      : kernels_(kernels), format_(format), pool_(pool) {
    for (std::uint32_t i = 0; i < pool.threads(); ++i) scratch_.emplace_back(kGemmScratch);
  }

  boost::json::object Run(const BenchShape& shape, std::size_t rows) {
    const MatrixShape size{shape.outputs, shape.inner, false};
    const PackedMatrix matrix(size, kernels_, format_);
    // A model's weights do not fit into the processor's caches. So each call reads another copy.
    const std::size_t copies =
        rows > 16 ? 1 : std::max<std::size_t>(1, (std::size_t{400} << 20) / matrix.Bytes());
    const MemoryRegion weights = Filled(copies * matrix.Bytes() + 4096);
    const std::size_t stride = (shape.inner + 63) / 32 * 32;
    const MemoryRegion input = Filled(rows * stride * 4 + 4096);
    const std::vector<IntegerGroup> groups(rows * (stride / OfFormat().group + 1), {0.01f, -5});
    const std::vector<float> scales(matrix.PaddedColumns(), 0.01f);
    std::vector<float> out(rows * shape.outputs);
    std::size_t copy = 0;
    const double seconds = Best([&] {
      copy = (copy + 1) % copies;
      GemmArgs whole;
      whole.input = input.data();
      whole.input_stride = stride;
      whole.weights = weights.data() + copy * matrix.Bytes();
      if (!Plain()) {
        whole.input_stride = stride / OfFormat().pack * OfFormat().step_bytes;
        whole.groups = groups.data();
        whole.group_stride = stride / OfFormat().group + 1;
      }
      if (format_.has_column_scales()) whole.scales = scales.data();
      whole.steps = matrix.steps();
      whole.out_stride = whole.out_columns = shape.outputs;
      pool_.Run([&](std::uint32_t thread) { Part(whole, matrix, rows, out.data(), thread); });
    });
    const double flops = 2.0 * static_cast<double>(rows * shape.inner * shape.outputs) / seconds;
    const double bytes = static_cast<double>(matrix.Bytes()) / seconds;
    return {{"shape", shape.name},
            {"rows", rows},
            {"gb_per_s", bytes / 1e9},
            {"gflop_per_s", flops / 1e9}};
  }

 private:
  void Part(GemmArgs args, const PackedMatrix& matrix, std::size_t rows, float* out,
            std::uint32_t thread) {
    const GridShare share =
        SplitGrid((rows + kRowTile - 1) / kRowTile, matrix.units(), pool_.threads(), thread);
    const std::size_t first = share.rows.first * kRowTile;
    const std::size_t end = std::min(rows, (share.rows.first + share.rows.count) * kRowTile);
    args.input = static_cast<const std::byte*>(args.input) +
                 first * args.input_stride * (Plain() ? DTypeBytes(kernels_.activation) : 1);
    if (!Plain()) args.groups += first * args.group_stride;
    args.out = out + first * args.out_stride;
    args.rows = end - first;
    args.first_vector = share.columns.first;
    args.vectors = share.columns.count;
    args.scratch = scratch_[thread].data();
    OfFormat().gemm(args);
  }

  bool Plain() const { return OfFormat().quantize == nullptr; }
  const FormatKernels& OfFormat() const { return kernels_.formats[format_.id()]; }

  const Kernels& kernels_;
  const WeightFormat& format_;
  WorkerPool& pool_;
  std::vector<std::vector<float>> scratch_;
};

double BarrierMicroseconds(WorkerPool& pool) {
  constexpr int kRounds = 1000;
  return Best([&] {
           pool.Run([&](std::uint32_t) {
             for (int i = 0; i < kRounds; ++i) pool.Barrier();
           });
         }) /
         kRounds * 1e6;
}

// Microseconds per token of a 128k vocabulary.
boost::json::object BenchSampler() {
  std::vector<float> logits(128256);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0f, 3.0f);
  for (float& logit : logits) logit = normal(random);
  Sampler sampler;
  const auto measure = [&](const SamplingParams& params, LogprobRequest::Kind kind) {
    LogprobRequest logprobs;
    logprobs.kind = kind;
    return Best([&] { (void)sampler.Sample(logits, {params, logprobs, nullptr, {}, 0}); }) * 1e6;
  };
  SamplingParams greedy;
  greedy.do_sample = false;
  SamplingParams filtered;
  filtered.do_sample = true;
  filtered.temperature = 0.8f;
  filtered.top_k = 50;
  filtered.top_p = 0.9f;
  using Kind = LogprobRequest::Kind;
  return {{"greedy_us", measure(greedy, Kind::kNone)},
          {"greedy_logprob_us", measure(greedy, Kind::kRaw)},
          {"top_k_top_p_us", measure(filtered, Kind::kNone)}};
}

// Median of an all-reduce of 8 KiB between two ranks, in microseconds.
double AllReduceMicroseconds() {
  constexpr int kRounds = 20000;
  std::vector<double> times(kRounds);
  const std::string name = "penstock-cpu-bench-" + std::to_string(getpid());
  const auto rank = [&](int number) {
    ShmOptions options;
    options.name = name;
    options.rank = number;
    auto group = JoinShmGroup(options);
    if (!group.ok()) std::abort();
    std::vector<float> data(2048, 1e-30f);
    for (double& time : times) {  // rank 1 only takes part
      const auto begin = Clock::now();
      if (!(*group)->AllReduceSum(data.data(), data.size()).ok()) std::abort();
      if (number == 0) time = std::chrono::duration<double>(Clock::now() - begin).count();
      std::fill(data.begin(), data.end(), 1.0f);
    }
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
  return times[kRounds / 2] * 1e6;
}

std::string NameOf(DType dtype, const WeightFormat& format) {
  return std::string(format.id() == FormatId::kPlain ? DTypeName(dtype) : format.name());
}

boost::json::object Report(Isa isa, DType dtype, const WeightFormat& format, WorkerPool& pool) {
  const Kernels& kernels = *FindKernels(isa, dtype);
  const double before = ReadBandwidth(pool);
  GemmBench bench(kernels, format, pool);
  boost::json::array products;
  constexpr BenchShape kShapes[] = {{"1.1B gate_up", 2048, 11264},
                                    {"1.1B down", 5632, 2048},
                                    {"135M qkv", 576, 960},
                                    {"135M head", 576, 49152}};
  for (const BenchShape& shape : kShapes) {
    for (std::size_t rows : {1u, 2u, 4u, 8u, 12u, 16u, 32u, 128u, 480u}) {
      products.push_back(bench.Run(shape, rows));
    }
  }
  const double bandwidth = std::max(before, ReadBandwidth(pool));
  for (auto& one : products) {
    one.as_object()["share_of_bandwidth"] = one.at("gb_per_s").as_double() / bandwidth;
  }
  return {{"isa", std::string(IsaName(isa))},
          {"dtype", std::string(DTypeName(dtype))},
          {"weights", NameOf(dtype, format)},
          {"threads", pool.threads()},
          {"read_gb_per_s", bandwidth},
          {"barrier_us", BarrierMicroseconds(pool)},
          {"products", products}};
}

constexpr const char* kUsage =
    "Usage: penstock-cpu-bench [THREADS]\n"
    "\n"
    "Prints the rates of the CPU kernels and the read bandwidth as JSON. The default\n"
    "is 2 threads.\n";

int Main(int argc, char** argv) {
  if (const auto exit = bench::ExitOfArguments(argc, argv, kUsage)) return *exit;
  const auto isa = ChooseIsa();
  if (!isa.ok()) {
    std::cerr << isa.status() << '\n';
    return 1;
  }
  WorkerPool pool(argc > 1 ? bench::NumberArgument<std::uint32_t>("THREADS", argv[1]) : 2);
  boost::json::array reports;
  for (DType dtype : {DType::kBFloat16, DType::kFloat32}) {
    reports.push_back(Report(*isa, dtype, FormatOf(FormatId::kPlain), pool));
  }
  const Kernels& kernels = *FindKernels(*isa, DType::kBFloat16);
  for (const WeightFormat* format : AllFormats()) {
    if (format->id() == FormatId::kPlain || kernels.formats[format->id()].gemm == nullptr) continue;
    reports.push_back(Report(*isa, DType::kBFloat16, *format, pool));
  }
  std::cout << JsonText(boost::json::object{{"sampler", BenchSampler()},
                                            {"all_reduce_8k_us", AllReduceMicroseconds()},
                                            {"kernels", reports}})
            << '\n';
  return 0;
}

}  // namespace
}  // namespace penstock::shard::cpu

int main(int argc, char** argv) { return penstock::shard::cpu::Main(argc, argv); }
