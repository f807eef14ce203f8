// A real device that records when each graph begins and ends on it. The time between two decode
// steps follows from that. In it the device copies inputs and sampled tokens or is idle.
//
// Threading: the model thread.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <vector>

#include "tests/unit/shard/backend/cuda/counting_gpu.h"

namespace penstock::shard::cuda {

class LaunchTimer final : public CountingGpu {
 public:
  explicit LaunchTimer(std::unique_ptr<Gpu> gpu) : CountingGpu(std::move(gpu)) {}
  ~LaunchTimer() override;

  // Records the next `launches` launches.
  absl::Status Begin(std::size_t launches);
  // Microseconds from the end of each recorded graph to the beginning of the next, ascending.
  // Waits.
  absl::StatusOr<std::vector<double>> Gaps();

  absl::Status Launch(Graph graph) override;

 private:
  struct Noted {
    void* begin = nullptr;  // cudaEvent_t
    void* end = nullptr;
  };
  void Forget();

  std::vector<Noted> noted_;
  std::size_t next_ = 0;  // of noted_
};

}  // namespace penstock::shard::cuda
