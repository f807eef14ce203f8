#include "shard/backend/cuda/sampling_runner.h"

#include <algorithm>
#include <cstddef>

#include "common/status.h"
#include "shard/sampling/processors.h"

namespace penstock::shard::cuda {
namespace {

// Entries of each list for all rows of a step; steps with more go to the host.
constexpr std::size_t kMostSeen = std::size_t{1} << 20;
constexpr std::size_t kMostBiases = std::size_t{1} << 16;
constexpr std::size_t kMostMasked = std::size_t{1} << 16;

using Kind = LogprobRequest::Kind;

// Whether the token is sampled from the row as the model gave it.
bool LeavesRow(const SampleRequest& request) {
  return !NeedsHistory(request.params) && request.params.logit_bias.empty() &&
         request.masked.empty();
}

bool HasLogprob(const SampleRequest& request) {
  if (request.logprobs.kind == Kind::kNone) return true;
  if (request.logprobs.top_n > 0) return false;
  return request.logprobs.kind == Kind::kProcessed || LeavesRow(request);
}

TokenLogprob LogprobOf(const SampleRequest& request) {
  if (request.logprobs.kind == Kind::kNone) return TokenLogprob::kNone;
  const bool filtered = request.logprobs.kind == Kind::kProcessed && request.params.do_sample;
  return filtered ? TokenLogprob::kOfSurvivors : TokenLogprob::kOfRow;
}

}  // namespace

SamplingRunner::Offsets SamplingRunner::Layout() const {
  Offsets at{};
  at.seen = rows_ * sizeof(SampleRow);
  at.biases = at.seen + kMostSeen * sizeof(SeenToken);
  at.masked = at.biases + kMostBiases * sizeof(TokenBias);
  at.tokens = at.masked + kMostMasked * sizeof(std::int32_t);
  at.logprobs = at.tokens + rows_ * sizeof(std::int32_t);
  at.end = at.logprobs + rows_ * sizeof(float);
  return at;
}

absl::StatusOr<SamplingRunner> SamplingRunner::Create(Gpu& gpu, std::uint32_t rows,
                                                      std::uint32_t width) {
  SamplingRunner runner;
  runner.gpu_ = &gpu;
  runner.rows_ = rows;
  runner.width_ = width;
  const std::size_t bytes = runner.Layout().end;
  for (GpuMemory& staging : runner.staging_) {
    PENSTOCK_ASSIGN_OR_RETURN(staging, GpuMemory::Pinned(gpu, bytes));
  }
  PENSTOCK_ASSIGN_OR_RETURN(runner.device_, GpuMemory::OnDevice(gpu, bytes));
  PENSTOCK_ASSIGN_OR_RETURN(runner.scratch_,
                            GpuMemory::OnDevice(gpu, SampleScratchBytes(rows, width)));
  return runner;
}

bool SamplingRunner::CanSample(std::span<const SampleRequest> requests) const {
  std::size_t seen = 0;
  std::size_t biases = 0;
  std::size_t masked = 0;
  for (const SampleRequest& request : requests) {
    const SamplingParams& params = request.params;
    const bool plain = HasLogprob(request) && request.allowed.empty() && request.refusal.empty() &&
                       !params.watermark && params.typical_p >= 1.0f && params.top_n_sigma <= 0 &&
                       params.Candidates() == 0;
    if (!plain) return false;
    seen += request.history == nullptr ? 0 : request.history->counts().size();
    biases += params.logit_bias.size();
    masked += request.masked.size();
  }
  return seen <= kMostSeen && biases <= kMostBiases && masked <= kMostMasked;
}

// `used` counts the entries of the lists that rows before this one take.
void SamplingRunner::Add(const SampleRequest& request, SampleRow& row, SampleRow& used) {
  const SamplingParams& params = request.params;
  row = SampleRow();
  row.seed = params.seed;
  row.sibling = params.sibling;
  row.position = request.position;
  row.do_sample = params.do_sample ? 1 : 0;
  row.temperature = params.Divisor();
  row.top_k = params.top_k;
  row.top_p = params.top_p;
  row.min_p = params.min_p;
  row.repetition_penalty = params.Repetition();
  row.frequency_penalty = params.frequency_penalty;
  row.presence_penalty = params.presence_penalty;
  row.logprob = LogprobOf(request);
  row.penalties = NeedsHistory(params) ? 1 : 0;
  row.first_seen = used.seen_count;
  row.first_bias = used.bias_count;
  row.first_masked = used.masked_count;
  const Offsets at = Layout();
  auto* seen = Host<SeenToken>(at.seen) + row.first_seen;
  auto* biases = Host<TokenBias>(at.biases) + row.first_bias;
  auto* masked = Host<std::int32_t>(at.masked) + row.first_masked;
  if (request.history != nullptr) {
    for (const auto& [token, count] : request.history->counts()) {
      seen[row.seen_count++] = {token, count};
    }
  }
  for (const auto& [token, bias] : params.logit_bias) biases[row.bias_count++] = {token, bias};
  for (const TokenId token : request.masked) masked[row.masked_count++] = token;
  used.seen_count += row.seen_count;
  used.bias_count += row.bias_count;
  used.masked_count += row.masked_count;
}

absl::Status SamplingRunner::Upload(std::size_t rows, const SampleRow& used) {
  const Offsets at = Layout();
  const auto send = [this](std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return absl::OkStatus();
    return gpu_->Upload(device_.At(offset), Host<void>(offset), bytes);
  };
  PENSTOCK_RETURN_IF_ERROR(send(0, rows * sizeof(SampleRow)));
  PENSTOCK_RETURN_IF_ERROR(send(at.seen, used.seen_count * sizeof(SeenToken)));
  PENSTOCK_RETURN_IF_ERROR(send(at.biases, used.bias_count * sizeof(TokenBias)));
  return send(at.masked, used.masked_count * sizeof(std::int32_t));
}

absl::Status SamplingRunner::Stage(std::span<const SampleRequest> requests,
                                   std::span<const std::int32_t> newest,
                                   std::uint32_t padded_rows) {
  const std::size_t all = std::max<std::size_t>(requests.size(), padded_rows);
  if (all > rows_) {
    return absl::InternalError("a step samples more rows than were prepared");
  }
  turn_ = 1 - turn_;
  SampleRow used;
  auto* rows = Host<SampleRow>(0);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    Add(requests[i], rows[i], used);
    if (!newest.empty()) rows[i].newest = newest[i];
  }
  std::fill(rows + requests.size(), rows + all, SampleRow());
  return Upload(all, used);
}

absl::Status SamplingRunner::Enqueue(float* logits, std::uint32_t rows) {
  const Offsets at = Layout();
  SampleArgs args;
  args.logits = logits;
  args.rows = static_cast<const SampleRow*>(device_.data());
  args.seen = reinterpret_cast<const SeenToken*>(device_.At(at.seen));
  args.biases = reinterpret_cast<const TokenBias*>(device_.At(at.biases));
  args.masked = reinterpret_cast<const std::int32_t*>(device_.At(at.masked));
  args.out = reinterpret_cast<std::int32_t*>(device_.At(at.tokens));
  args.logprobs = reinterpret_cast<float*>(device_.At(at.logprobs));
  args.scratch = scratch_.data();
  args.row_count = rows;
  args.width = width_;
  return SampleRows(args, gpu_->stream());
}

// One copy takes both lists, with a few unused rows between them.
absl::Status SamplingRunner::Fetch(std::uint32_t rows) {
  const Offsets at = Layout();
  const std::size_t bytes = at.logprobs - at.tokens + rows * sizeof(float);
  return gpu_->Download(Host<void>(at.tokens), device_.At(at.tokens), bytes);
}

void SamplingRunner::Take(std::span<DeviceToken> out, bool earlier) const {
  const Offsets at = Layout();
  const GpuMemory& staging = staging_[earlier ? 1 - turn_ : turn_];
  const auto* tokens = reinterpret_cast<const std::int32_t*>(staging.At(at.tokens));
  const auto* logprobs = reinterpret_cast<const float*>(staging.At(at.logprobs));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = {tokens[i], logprobs[i]};
}

}  // namespace penstock::shard::cuda
