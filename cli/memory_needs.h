// What a model needs of this machine's memory, as its shards would plan it.
#pragma once

#include <absl/status/statusor.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "common/options/values.h"
#include "launcher/launch_plan.h"

namespace penstock::cli {

// Sizes in bytes, of all ranks of this host together unless said otherwise.
struct MemoryNeeds {
  std::string model_type;
  std::string dtype;
  std::string backend;
  std::uint64_t parameters = 0;
  std::uint64_t max_position = 0;
  std::uint64_t ranks = 1;
  std::uint64_t weights = 0;
  std::uint64_t scratch = 0;
  std::uint64_t kv_per_token = 0;            // of layers that keep every position
  std::uint64_t window = 0;                  // 0: no layer has one
  std::uint64_t window_kv_per_sequence = 0;  // of layers with a window
  std::uint64_t state_per_sequence = 0;      // of recurrent layers
  std::uint64_t free = 0;
  std::string limit;    // what bounds `free`
  std::string problem;  // why the shard's plan does not fit; empty: it does

  std::uint64_t Fixed() const { return weights + scratch; }
  bool Fits() const { return Fixed() <= free && problem.empty(); }
  // What weights and scratch leave of `free`.
  std::uint64_t Left() const { return free - std::min(free, Fixed()); }
  // The KV cache of one request of this length.
  std::uint64_t RequestBytes(std::uint64_t tokens) const {
    return kv_per_token * tokens + window_kv_per_sequence + state_per_sequence;
  }
};

// Reads a line of `penstock-shard --memory-plan`.
absl::StatusOr<MemoryNeeds> ParseMemoryPlan(const std::string& line, std::uint64_t ranks);

// Asks the shard that the launcher would start. The model-id must be a folder. The error is the
// shard's.
absl::StatusOr<MemoryNeeds> AskMemoryNeeds(const options::Values& values,
                                           const launcher::Machine& machine);

}  // namespace penstock::cli
