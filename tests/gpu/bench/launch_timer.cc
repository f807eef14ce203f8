#include "tests/gpu/bench/launch_timer.h"

#include <cuda_runtime_api.h>

#include <algorithm>

#include "common/status.h"
#include "shard/backend/cuda/cuda_error.h"

namespace penstock::shard::cuda {
namespace {

absl::StatusOr<void*> MakeEvent() {
  cudaEvent_t event = nullptr;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventCreate(&event), "event"));
  return event;
}

cudaEvent_t Event(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

LaunchTimer::~LaunchTimer() { Forget(); }

void LaunchTimer::Forget() {
  for (const Noted& noted : noted_) {
    if (noted.begin != nullptr) cudaEventDestroy(Event(noted.begin));
    if (noted.end != nullptr) cudaEventDestroy(Event(noted.end));
  }
  noted_.clear();
  next_ = 0;
}

absl::Status LaunchTimer::Begin(std::size_t launches) {
  Forget();
  for (std::size_t i = 0; i < launches; ++i) {
    Noted& noted = noted_.emplace_back();
    PENSTOCK_ASSIGN_OR_RETURN(noted.begin, MakeEvent());
    PENSTOCK_ASSIGN_OR_RETURN(noted.end, MakeEvent());
  }
  return absl::OkStatus();
}

absl::Status LaunchTimer::Launch(Graph graph) {
  if (next_ == noted_.size()) return CountingGpu::Launch(graph);
  const auto on_stream = static_cast<cudaStream_t>(stream());
  const Noted& noted = noted_[next_++];
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaEventRecord(Event(noted.begin), on_stream), "timing"));
  PENSTOCK_RETURN_IF_ERROR(CountingGpu::Launch(graph));
  return ToStatus(cudaEventRecord(Event(noted.end), on_stream), "timing");
}

absl::StatusOr<std::vector<double>> LaunchTimer::Gaps() {
  PENSTOCK_RETURN_IF_ERROR(Synchronize());
  std::vector<double> gaps;
  for (std::size_t i = 1; i < next_; ++i) {
    float milliseconds = 0;
    PENSTOCK_RETURN_IF_ERROR(ToStatus(
        cudaEventElapsedTime(&milliseconds, Event(noted_[i - 1].end), Event(noted_[i].begin)),
        "timing"));
    gaps.push_back(1e3 * milliseconds);
  }
  std::sort(gaps.begin(), gaps.end());
  Forget();
  return gaps;
}

}  // namespace penstock::shard::cuda
