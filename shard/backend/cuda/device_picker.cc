#include "shard/backend/cuda/device_picker.h"

#include <algorithm>

#include "common/status.h"

namespace penstock::shard::cuda {
namespace {

// Biases of a row, and tokens that it may not give; rows with more go to the host.
constexpr std::uint32_t kMostEntries = 1024;

}  // namespace

DevicePicker::Offsets DevicePicker::Layout() const {
  Offsets at{};
  at.seen = rows_ * sizeof(SampleRow);
  at.biases = at.seen + std::size_t{rows_} * max_length_ * sizeof(SeenToken);
  at.masked = at.biases + std::size_t{rows_} * kMostEntries * sizeof(TokenBias);
  at.out = at.masked + std::size_t{rows_} * kMostEntries * sizeof(std::int32_t);
  at.end = at.out + rows_ * sizeof(std::int32_t);
  return at;
}

absl::StatusOr<DevicePicker> DevicePicker::Create(Gpu& gpu, std::uint32_t rows,
                                                  std::uint32_t max_length) {
  DevicePicker picker;
  picker.gpu_ = &gpu;
  picker.rows_ = rows;
  picker.max_length_ = max_length;
  const std::size_t bytes = picker.Layout().end;
  PENSTOCK_ASSIGN_OR_RETURN(picker.staging_, GpuMemory::Pinned(gpu, bytes));
  PENSTOCK_ASSIGN_OR_RETURN(picker.device_, GpuMemory::OnDevice(gpu, bytes));
  return picker;
}

bool DevicePicker::CanPick(const SampleRequest& request) const {
  const SamplingParams& params = request.params;
  const bool plain = request.logprobs.kind == LogprobRequest::Kind::kNone &&
                     request.allowed.empty() && request.refusal.empty() && !params.watermark &&
                     params.typical_p >= 1.0f && params.Candidates() == 0;
  const std::size_t seen = request.history == nullptr ? 0 : request.history->counts().size();
  return plain && seen <= max_length_ && params.logit_bias.size() <= kMostEntries &&
         request.masked.size() <= kMostEntries;
}

// `used`: entries of the lists that the rows before took.
void DevicePicker::Add(const SampleRequest& request, SampleRow& row, SampleRow& used) {
  const SamplingParams& params = request.params;
  row = SampleRow();
  row.seed = params.seed;
  row.sibling = params.sibling;
  row.position = request.position;
  row.do_sample = params.do_sample ? 1 : 0;
  row.temperature = params.temperature;
  row.top_k = params.top_k;
  row.top_p = params.top_p;
  row.min_p = params.min_p;
  row.repetition_penalty = params.repetition_penalty;
  row.frequency_penalty = params.frequency_penalty;
  row.presence_penalty = params.presence_penalty;
  row.first_seen = used.seen_count;
  row.first_bias = used.bias_count;
  row.first_masked = used.masked_count;
  const Offsets at = Layout();
  auto* seen = reinterpret_cast<SeenToken*>(staging_.At(at.seen)) + row.first_seen;
  auto* biases = reinterpret_cast<TokenBias*>(staging_.At(at.biases)) + row.first_bias;
  auto* masked = reinterpret_cast<std::int32_t*>(staging_.At(at.masked)) + row.first_masked;
  if (request.history != nullptr) {
    for (const auto& [token, count] : request.history->counts()) {
      seen[row.seen_count++] = {token, count.generated};
    }
  }
  for (const auto& [token, bias] : params.logit_bias) biases[row.bias_count++] = {token, bias};
  for (const TokenId token : request.masked) masked[row.masked_count++] = token;
  used.seen_count += row.seen_count;
  used.bias_count += row.bias_count;
  used.masked_count += row.masked_count;
}

absl::Status DevicePicker::Upload(std::size_t rows, const SampleRow& used) {
  const Offsets at = Layout();
  const auto send = [this](std::size_t offset, std::size_t bytes) {
    if (bytes == 0) return absl::OkStatus();
    return gpu_->Upload(device_.At(offset), staging_.At(offset), bytes);
  };
  PENSTOCK_RETURN_IF_ERROR(send(0, rows * sizeof(SampleRow)));
  PENSTOCK_RETURN_IF_ERROR(send(at.seen, used.seen_count * sizeof(SeenToken)));
  PENSTOCK_RETURN_IF_ERROR(send(at.biases, used.bias_count * sizeof(TokenBias)));
  return send(at.masked, used.masked_count * sizeof(std::int32_t));
}

absl::Status DevicePicker::Pick(std::span<const SampleRequest> requests, float* logits,
                                std::uint32_t width, std::span<TokenId> out) {
  if (requests.size() > rows_) {
    return absl::InternalError("the device is to pick more rows than were prepared");
  }
  SampleRow used;
  auto* rows = static_cast<SampleRow*>(staging_.data());
  for (const SampleRequest& request : requests) Add(request, *rows++, used);
  PENSTOCK_RETURN_IF_ERROR(Upload(requests.size(), used));
  const Offsets at = Layout();
  SampleArgs args;
  args.logits = logits;
  args.rows = static_cast<const SampleRow*>(device_.data());
  args.seen = reinterpret_cast<const SeenToken*>(device_.At(at.seen));
  args.biases = reinterpret_cast<const TokenBias*>(device_.At(at.biases));
  args.masked = reinterpret_cast<const std::int32_t*>(device_.At(at.masked));
  args.out = reinterpret_cast<std::int32_t*>(device_.At(at.out));
  args.row_count = static_cast<std::uint32_t>(requests.size());
  args.width = width;
  PENSTOCK_RETURN_IF_ERROR(SampleRows(args, gpu_->stream()));
  PENSTOCK_RETURN_IF_ERROR(gpu_->Download(staging_.At(at.out), device_.At(at.out),
                                          requests.size() * sizeof(std::int32_t)));
  PENSTOCK_RETURN_IF_ERROR(gpu_->Synchronize());
  std::copy_n(reinterpret_cast<const std::int32_t*>(staging_.At(at.out)), requests.size(),
              out.begin());
  return absl::OkStatus();
}

}  // namespace penstock::shard::cuda
