#include "tests/gpu/bench/backend_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>

#include "common/status.h"
#include "shard/backend/cuda/cuda_backend.h"
#include "shard/backend/cuda/cuda_error.h"
#include "shard/backend/cuda/program_check.h"
#include "shard/backend/device_sampler.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/model/model.h"
#include "shard/sampling/sampler.h"
#include "shard/weights/convert.h"
#include "tests/gpu/bench/rates.h"

// Functions of libcudart whose header is not in the wheels.
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

namespace penstock::shard::cuda {
namespace {

constexpr std::uint32_t kContext = 1024;
constexpr std::uint32_t kPrompt = 2048;
constexpr std::uint32_t kLongContext = 32768;
constexpr std::uint32_t kBlockSize = 16;
constexpr std::uint32_t kMostRows = 256;
constexpr std::uint32_t kMostSequences = 512;
constexpr std::uint32_t kLogitRows = 64;
constexpr int kSteps = 50;

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Small random weights in the memory of the largest matrix, which all of them share on the host.
// Each matrix has its own copy on the device, so steps read as many bytes as with a real model.
absl::StatusOr<LoadedWeights> MadeWeights(const Model& model) {
  std::uint64_t most = 0;
  for (const WeightTarget& target : model.weight_plan.targets) {
    most = std::max(most, target.Elements());
  }
  LoadedWeights weights;
  PENSTOCK_ASSIGN_OR_RETURN(weights.memory, MemoryRegion::Allocate(most * DTypeBytes(model.dtype)));
  std::mt19937 random(1);
  std::vector<float> values(std::size_t{1} << 16);
  for (float& value : values) value = static_cast<float>(random() % 2001) * 4e-5f - 0.04f;
  for (std::uint64_t at = 0; at < most; at += values.size()) {
    ConvertElements(values.data(), DType::kFloat32,
                    weights.memory.data() + at * DTypeBytes(model.dtype), model.dtype,
                    std::min<std::uint64_t>(values.size(), most - at));
  }
  for (const WeightTarget& target : model.weight_plan.targets) {
    weights.views.push_back(
        target.vector
            ? TensorView::Vector(weights.memory.data(), target.rows, model.dtype)
            : TensorView::Matrix(weights.memory.data(), target.rows, target.columns, model.dtype));
  }
  return weights;
}

class Bench {
 public:
  Bench(LaunchTimer& gpu, Model model) : gpu_(gpu), model_(std::move(model)) {}

  absl::Status Open(const BenchOptions& bench) {
    auto weights = bench.made_weights ? MadeWeights(model_) : model_.Load(nullptr);
    PENSTOCK_RETURN_IF_ERROR(weights.status());
    CudaOptions options;
    options.program = model_.program;
    options.weights = *std::move(weights);
    options.dtype = model_.dtype;
    options.block_size = kBlockSize;
    options.batch_invariant = bench.batch_invariant;
    options.quantization = model_.quantization = bench.quantization;
    options.kv_type = model_.kv_type = bench.kv_type;
    options.parts = bench.parts;
    PENSTOCK_ASSIGN_OR_RETURN(backend_, MakeCudaBackend(std::move(options), gpu_));
    picker_ = dynamic_cast<DeviceSampler*>(backend_.get());
    const auto begin = Clock::now();
    PENSTOCK_RETURN_IF_ERROR(backend_->Prepare(
        {kPrompt, kLongContext + kBlockSize, kLogitRows, 0, kMostSequences}, nullptr));
    const double tuned = Since(begin);
    PENSTOCK_RETURN_IF_ERROR(backend_->AllocateCache(kMostRows * BlocksPerRow()));
    std::printf("{\"test\": \"start\", \"tuning_seconds\": %.2f, \"graphs_seconds\": %.2f}\n",
                tuned, Since(begin) - tuned);
    return absl::OkStatus();
  }

  absl::Status Decode(std::uint32_t rows, double read_bandwidth);
  // 512 rows, the most that have a graph.
  absl::Status ShortDecode(double read_bandwidth);
  // Sequences of 512 positions and one of 32,768: no thread block may get the long one alone.
  absl::Status MixedDecode(double read_bandwidth);
  // One decode step for a profiler, which is started before it and stopped after it.
  absl::Status ProfiledStep(std::uint32_t rows);
  absl::Status Prefill(double product_rate);
  // What the device does between decode steps of `rows` rows with two steps in flight.
  absl::Status GapsBetweenSteps(std::uint32_t rows);

 private:
  static std::uint32_t BlocksPerRow() { return kContext / kBlockSize + 1; }
  absl::Status Time(const std::string& name, double read_bandwidth);
  absl::Status Step(bool with_logits);
  absl::Status Begin(bool first);
  // Ways to decode, in seconds per step. Here the device selects every token, `depth` steps are in
  // flight, and each step reads its tokens on the device.
  absl::StatusOr<double> TimeOfSampledSteps(std::uint32_t in_flight);
  absl::StatusOr<double> WithLogitsToHost();
  // The same graphs one after the other, without reading a token.
  absl::StatusOr<double> OnDevice();
  // A batch of one segment for each length: `count` rows after `context` positions.
  void Use(const std::vector<std::uint32_t>& contexts, std::uint32_t count);
  // Bytes that a decode step reads: the weights of all GEMMs, and K and V.
  double BytesOfDecode() const;
  double OperationsOfPrefill() const;
  // Elements of the weights of the body's GEMMs and of the head's.
  double BodyElements() const { return Elements(model_.program.body); }
  double HeadElements() const { return Elements(model_.program.head); }
  double Elements(const std::vector<Op>& ops) const;

  LaunchTimer& gpu_;
  Model model_;
  std::unique_ptr<Backend> backend_;
  DeviceSampler* picker_ = nullptr;  // the backend
  std::vector<TokenId> tokens_;
  std::vector<std::vector<BlockId>> tables_;
  std::vector<RaggedSegment> segments_;
  std::vector<std::uint32_t> logit_rows_;
  const SamplingParams greedy_;
  const LogprobRequest no_logprobs_;
  std::vector<SampleRequest> requests_;
  std::vector<std::int32_t> newest_;
  std::vector<DeviceToken> picks_;
};

void Bench::Use(const std::vector<std::uint32_t>& contexts, std::uint32_t count) {
  const auto rows = static_cast<std::uint32_t>(contexts.size());
  tokens_.assign(std::size_t{rows} * count, 7);
  tables_.assign(rows, {});
  segments_.clear();
  logit_rows_.clear();
  std::uint32_t block = 0;
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t at = 0; at < contexts[row] + count; at += kBlockSize) {
      tables_[row].push_back(BlockId(block++));
    }
    segments_.push_back({.query_start = row * count,
                         .query_count = count,
                         .context_length = contexts[row],
                         .blocks = tables_[row]});
    logit_rows_.push_back(row * count + count - 1);
  }
}

absl::Status Bench::Step(bool with_logits) {
  PENSTOCK_RETURN_IF_ERROR(backend_->Execute({tokens_, segments_, logit_rows_}));
  const auto rows = static_cast<std::uint32_t>(logit_rows_.size());
  for (std::uint32_t first = 0; with_logits && first < rows; first += kLogitRows) {
    PENSTOCK_RETURN_IF_ERROR(backend_->Logits(first, std::min(kLogitRows, rows - first)).status());
  }
  return absl::OkStatus();
}

absl::Status Bench::Begin(bool first) {
  for (std::size_t row = 0; row < newest_.size(); ++row) {
    newest_[row] = first ? -1 : static_cast<std::int32_t>(row);
  }
  return picker_->BeginStep({tokens_, segments_, logit_rows_}, newest_, requests_, nullptr);
}

absl::StatusOr<double> Bench::TimeOfSampledSteps(std::uint32_t in_flight) {
  requests_.clear();
  for (std::size_t row = 0; row < logit_rows_.size(); ++row) {
    requests_.push_back({.params = greedy_, .logprobs = no_logprobs_});
  }
  newest_.assign(logit_rows_.size(), -1);
  picks_.assign(logit_rows_.size(), {});
  const auto begin = Clock::now();
  int begun = 0;
  for (int ended = 0; ended < kSteps; ++ended) {
    for (; begun < kSteps && begun < ended + static_cast<int>(in_flight); ++begun) {
      PENSTOCK_RETURN_IF_ERROR(Begin(begun == 0));
    }
    PENSTOCK_RETURN_IF_ERROR(picker_->EndStep(picks_));
    const bool failed = std::any_of(picks_.begin(), picks_.end(),
                                    [](const DeviceToken& pick) { return pick.token < 0; });
    if (failed) return absl::InternalError("a row of logits gave no token");
  }
  return Since(begin) / kSteps;
}

absl::StatusOr<double> Bench::WithLogitsToHost() {
  const auto begin = Clock::now();
  for (int i = 0; i < kSteps; ++i) PENSTOCK_RETURN_IF_ERROR(Step(true));
  return Since(begin) / kSteps;
}

absl::StatusOr<double> Bench::OnDevice() {
  const auto begin = Clock::now();
  for (int i = 0; i < kSteps; ++i) PENSTOCK_RETURN_IF_ERROR(Step(false));
  PENSTOCK_RETURN_IF_ERROR(gpu_.Synchronize());
  return Since(begin) / kSteps;
}

double Bench::Elements(const std::vector<Op>& ops) const {
  double sum = 0;
  for (const Op& op : ops) {
    const auto* linear = std::get_if<LinearOp>(&op);
    if (linear == nullptr) continue;
    sum +=
        static_cast<double>(model_.program.Width(linear->in)) * model_.program.Width(linear->out);
  }
  return sum;
}

double Bench::BytesOfDecode() const {
  const PagedLayout layout{model_.program.caches, kBlockSize, model_.dtype, 0, model_.kv_type};
  const double plain = static_cast<double>(DTypeBytes(model_.dtype));
  const double body = model_.quantization == Quantization::kNone ? plain : 1;
  double positions = 0;
  for (const RaggedSegment& segment : segments_) positions += segment.context_length + 1;
  return BodyElements() * body + HeadElements() * plain +
         positions * static_cast<double>(layout.BytesPerToken());
}

// For one sequence without a cached prefix. On average a query attends to half of the positions.
double Bench::OperationsOfPrefill() const {
  const double rows = kPrompt;
  const HeadShape heads = HeadsOf(model_.program);
  const double layers = static_cast<double>(model_.program.caches.size());
  const double attention = 4.0 * heads.heads * heads.head_dim * rows * rows / 2 * layers;
  return 2 * BodyElements() * rows + 2 * HeadElements() + attention;
}

absl::Status Bench::Decode(std::uint32_t rows, double read_bandwidth) {
  Use(std::vector<std::uint32_t>(rows, kContext), 1);
  return Time("decode_b" + std::to_string(rows), read_bandwidth);
}

absl::Status Bench::ShortDecode(double read_bandwidth) {
  constexpr std::uint32_t kPositions = 480;
  Use(std::vector<std::uint32_t>(512, kPositions), 1);
  return Time("decode_512x480", read_bandwidth);
}

absl::Status Bench::MixedDecode(double read_bandwidth) {
  std::vector<std::uint32_t> contexts(64, 512);
  contexts[40] = kLongContext;
  Use(contexts, 1);
  return Time("decode_63x512_1x32768", read_bandwidth);
}

absl::Status Bench::Time(const std::string& name, double read_bandwidth) {
  PENSTOCK_RETURN_IF_ERROR(Step(true));
  PENSTOCK_RETURN_IF_ERROR(TimeOfSampledSteps(kMaxStepsInFlight).status());
  const int allocations = gpu_.allocations();
  const int syncs = gpu_.syncs();
  PENSTOCK_ASSIGN_OR_RETURN(const double step, TimeOfSampledSteps(kMaxStepsInFlight));
  const int syncs_ahead = gpu_.syncs() - syncs;
  PENSTOCK_ASSIGN_OR_RETURN(const double waiting, TimeOfSampledSteps(1));
  PENSTOCK_ASSIGN_OR_RETURN(const double logits, WithLogitsToHost());
  PENSTOCK_ASSIGN_OR_RETURN(const double device, OnDevice());
  const double bandwidth = BytesOfDecode() / step;
  std::printf(
      "{\"test\": \"%s\", \"tokens_per_second\": %.1f, \"step_ms\": %.4f, "
      "\"one_step_in_flight_ms\": %.4f, \"logits_to_host_ms\": %.4f, "
      "\"body_and_head_on_device_ms\": %.4f, \"picks_copies_and_idle_ms\": %.4f, "
      "\"gb_per_second\": %.1f, \"share_of_read_bandwidth\": %.4f, \"allocations\": %d, "
      "\"syncs\": %d}\n",
      name.c_str(), static_cast<double>(segments_.size()) / step, 1e3 * step, 1e3 * waiting,
      1e3 * logits, 1e3 * device, 1e3 * (step - device), bandwidth / 1e9,
      bandwidth / read_bandwidth, gpu_.allocations() - allocations, syncs_ahead);
  return absl::OkStatus();
}

absl::Status Bench::ProfiledStep(std::uint32_t rows) {
  Use(std::vector<std::uint32_t>(rows, kContext), 1);
  PENSTOCK_RETURN_IF_ERROR(TimeOfSampledSteps(1).status());
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaProfilerStart(), "profiler"));
  PENSTOCK_RETURN_IF_ERROR(Begin(true));
  PENSTOCK_RETURN_IF_ERROR(picker_->EndStep(picks_));
  return ToStatus(cudaProfilerStop(), "profiler");
}

absl::Status Bench::GapsBetweenSteps(std::uint32_t rows) {
  Use(std::vector<std::uint32_t>(rows, kContext), 1);
  PENSTOCK_RETURN_IF_ERROR(TimeOfSampledSteps(kMaxStepsInFlight).status());
  PENSTOCK_RETURN_IF_ERROR(gpu_.Begin(kSteps));
  PENSTOCK_RETURN_IF_ERROR(TimeOfSampledSteps(kMaxStepsInFlight).status());
  PENSTOCK_ASSIGN_OR_RETURN(const std::vector<double> gaps, gpu_.Gaps());
  if (gaps.empty()) return absl::InternalError("the steps ran without graphs");
  std::printf(
      "{\"test\": \"gaps_b%u\", \"copies_and_idle_us_p50\": %.1f, \"p90\": %.1f, \"max\": %.1f, "
      "\"gaps\": %zu}\n",
      rows, gaps[gaps.size() / 2], gaps[gaps.size() * 9 / 10], gaps.back(), gaps.size());
  return absl::OkStatus();
}

absl::Status Bench::Prefill(double product_rate) {
  Use({0}, kPrompt);
  PENSTOCK_RETURN_IF_ERROR(Step(true));
  const auto begin = Clock::now();
  for (int i = 0; i < 10; ++i) PENSTOCK_RETURN_IF_ERROR(Step(true));
  const double seconds = Since(begin) / 10;
  const double rate = OperationsOfPrefill() / seconds;
  std::printf(
      "{\"test\": \"prefill_2048\", \"tokens_per_second\": %.1f, \"step_ms\": %.3f, "
      "\"tflops\": %.1f, \"share_of_product_rate\": %.4f}\n",
      kPrompt / seconds, 1e3 * seconds, rate / 1e12, rate / product_rate);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunBackendBench(LaunchTimer& gpu, const BenchOptions& options) {
  ModelOptions model_options;
  model_options.folder = options.folder;
  model_options.device = {Device::Kind::kCuda, 0};
  PENSTOCK_ASSIGN_OR_RETURN(Model model, Model::Open(model_options));
  Bench bench(gpu, std::move(model));
  if (options.profiled_rows > 0) {
    PENSTOCK_RETURN_IF_ERROR(bench.Open(options));
    return bench.ProfiledStep(options.profiled_rows);
  }
  PENSTOCK_ASSIGN_OR_RETURN(const double read, ReadBandwidth(gpu));
  PENSTOCK_ASSIGN_OR_RETURN(const double copy, CopyBandwidth(gpu));
  PENSTOCK_ASSIGN_OR_RETURN(const double product, ProductRate(gpu));
  std::printf(
      "{\"test\": \"rates\", \"read_gb_per_second\": %.1f, \"copy_gb_per_second\": %.1f, "
      "\"product_tflops\": %.1f}\n",
      read / 1e9, copy / 1e9, product / 1e12);
  PENSTOCK_RETURN_IF_ERROR(bench.Open(options));
  for (std::uint32_t rows : {1u, 8u, 32u, 64u, 256u}) {
    PENSTOCK_RETURN_IF_ERROR(bench.Decode(rows, read));
  }
  PENSTOCK_RETURN_IF_ERROR(bench.ShortDecode(read));
  PENSTOCK_RETURN_IF_ERROR(bench.MixedDecode(read));
  PENSTOCK_RETURN_IF_ERROR(bench.Prefill(product));
  return options.parts.graphs ? bench.GapsBetweenSteps(64) : absl::OkStatus();
}

}  // namespace penstock::shard::cuda
