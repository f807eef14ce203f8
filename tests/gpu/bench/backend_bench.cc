#include "tests/gpu/bench/backend_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "common/status.h"
#include "shard/backend/cuda/cuda_backend.h"
#include "shard/backend/device_sampler.h"
#include "shard/cache/paged/paged_layout.h"
#include "shard/model/model.h"
#include "shard/sampling/sampler.h"
#include "tests/gpu/bench/rates.h"

namespace penstock::shard::cuda {
namespace {

constexpr std::uint32_t kContext = 1024;
constexpr std::uint32_t kPrompt = 2048;
constexpr std::uint32_t kBlockSize = 16;
constexpr std::uint32_t kMostRows = 256;
constexpr std::uint32_t kLogitRows = 64;
constexpr int kSteps = 50;

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class Bench {
 public:
  Bench(LaunchTimer& gpu, Model model) : gpu_(gpu), model_(std::move(model)) {}

  absl::Status Open() {
    PENSTOCK_ASSIGN_OR_RETURN(LoadedWeights weights, model_.Load(nullptr));
    CudaOptions options;
    options.program = model_.program;
    options.weights = std::move(weights);
    options.dtype = model_.dtype;
    options.block_size = kBlockSize;
    PENSTOCK_ASSIGN_OR_RETURN(backend_, MakeCudaBackend(std::move(options), gpu_));
    picker_ = dynamic_cast<DeviceSampler*>(backend_.get());
    PENSTOCK_RETURN_IF_ERROR(backend_->Prepare({kPrompt, kPrompt, kLogitRows, 0}, nullptr));
    return backend_->AllocateCache(kMostRows * BlocksPerRow());
  }

  absl::Status Decode(std::uint32_t rows, double read_bandwidth);
  absl::Status Prefill(double product_rate);
  // What the device does between decode steps of `rows` rows with two steps in flight.
  absl::Status GapsBetweenSteps(std::uint32_t rows);

 private:
  static std::uint32_t BlocksPerRow() { return kContext / kBlockSize + 1; }
  absl::Status Step(bool with_logits);
  absl::Status Begin(bool first);
  // Ways to decode, in seconds per step. Here the device selects every token, `depth` steps are in
  // flight, and each step reads its tokens on the device.
  absl::StatusOr<double> TimeOfSampledSteps(std::uint32_t in_flight);
  absl::StatusOr<double> WithLogitsToHost();
  // The same graphs one after the other, without reading a token.
  absl::StatusOr<double> OnDevice();
  void Use(std::uint32_t rows, std::uint32_t count, std::uint32_t context);
  // Bytes that a decode step reads: all weights except the embeddings, and K and V.
  double BytesOfDecode(std::uint32_t rows) const;

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

void Bench::Use(std::uint32_t rows, std::uint32_t count, std::uint32_t context) {
  tokens_.assign(std::size_t{rows} * count, 7);
  tables_.assign(rows, {});
  segments_.clear();
  logit_rows_.clear();
  std::uint32_t block = 0;
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t at = 0; at < context + count; at += kBlockSize) {
      tables_[row].push_back(BlockId(block++));
    }
    segments_.push_back({.query_start = row * count,
                         .query_count = count,
                         .context_length = context,
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

double Bench::BytesOfDecode(std::uint32_t rows) const {
  const Program& program = model_.program;
  const double weights = static_cast<double>(model_.WeightBytes());
  const double table = static_cast<double>(program.vocabulary) * program.Width(Buffer::kHidden) *
                       static_cast<double>(DTypeBytes(model_.dtype));
  const PagedLayout layout{program.caches, 16, model_.dtype};
  const double position = static_cast<double>(layout.BytesPerToken());
  return weights - table + position * kContext * rows;
}

absl::Status Bench::Decode(std::uint32_t rows, double read_bandwidth) {
  Use(rows, 1, kContext);
  PENSTOCK_RETURN_IF_ERROR(Step(true));
  PENSTOCK_RETURN_IF_ERROR(TimeOfSampledSteps(kMaxStepsInFlight).status());
  const int allocations = gpu_.allocations();
  const int syncs = gpu_.syncs();
  PENSTOCK_ASSIGN_OR_RETURN(const double step, TimeOfSampledSteps(kMaxStepsInFlight));
  const int syncs_ahead = gpu_.syncs() - syncs;
  PENSTOCK_ASSIGN_OR_RETURN(const double waiting, TimeOfSampledSteps(1));
  PENSTOCK_ASSIGN_OR_RETURN(const double logits, WithLogitsToHost());
  PENSTOCK_ASSIGN_OR_RETURN(const double device, OnDevice());
  const double bandwidth = BytesOfDecode(rows) / step;
  std::printf(
      "{\"test\": \"decode_b%u\", \"tokens_per_second\": %.1f, \"step_ms\": %.4f, "
      "\"one_step_in_flight_ms\": %.4f, \"logits_to_host_ms\": %.4f, "
      "\"body_and_head_on_device_ms\": %.4f, \"picks_copies_and_idle_ms\": %.4f, "
      "\"share_of_read_bandwidth\": %.4f, \"allocations\": %d, \"syncs\": %d}\n",
      rows, rows / step, 1e3 * step, 1e3 * waiting, 1e3 * logits, 1e3 * device,
      1e3 * (step - device), bandwidth / read_bandwidth, gpu_.allocations() - allocations,
      syncs_ahead);
  return absl::OkStatus();
}

absl::Status Bench::GapsBetweenSteps(std::uint32_t rows) {
  Use(rows, 1, kContext);
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
  Use(1, kPrompt, 0);
  PENSTOCK_RETURN_IF_ERROR(Step(true));
  const auto begin = Clock::now();
  for (int i = 0; i < 10; ++i) PENSTOCK_RETURN_IF_ERROR(Step(true));
  const double seconds = Since(begin) / 10;
  const double operations = 2.0 * static_cast<double>(model_.parameters) * kPrompt;
  std::printf(
      "{\"test\": \"prefill_2048\", \"tokens_per_second\": %.1f, \"step_ms\": %.3f, "
      "\"share_of_product_rate\": %.4f}\n",
      kPrompt / seconds, 1e3 * seconds, operations / seconds / product_rate);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunBackendBench(LaunchTimer& gpu, const std::string& folder) {
  PENSTOCK_ASSIGN_OR_RETURN(const double read, ReadBandwidth(gpu));
  PENSTOCK_ASSIGN_OR_RETURN(const double copy, CopyBandwidth(gpu));
  PENSTOCK_ASSIGN_OR_RETURN(const double product, ProductRate(gpu));
  std::printf(
      "{\"test\": \"rates\", \"read_gb_per_second\": %.1f, \"copy_gb_per_second\": %.1f, "
      "\"product_tflops\": %.1f}\n",
      read / 1e9, copy / 1e9, product / 1e12);
  ModelOptions options;
  options.folder = folder;
  options.device = {Device::Kind::kCuda, 0};
  PENSTOCK_ASSIGN_OR_RETURN(Model model, Model::Open(options));
  Bench bench(gpu, std::move(model));
  PENSTOCK_RETURN_IF_ERROR(bench.Open());
  for (std::uint32_t rows : {1u, 8u, 32u, 64u, 256u}) {
    PENSTOCK_RETURN_IF_ERROR(bench.Decode(rows, read));
  }
  PENSTOCK_RETURN_IF_ERROR(bench.GapsBetweenSteps(64));
  return bench.Prefill(product);
}

}  // namespace penstock::shard::cuda
