// What differs between penstock-shard and penstock-shard-cuda: the device of this rank and the
// backends that compute on it. Each executable links one definition of OpenPlatform.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/options/values.h"
#include "shard/executor/model_rank.h"
#include "shard/executor/rank_device.h"

namespace penstock::shard {

struct Platform {
  Device device;
  std::shared_ptr<RankDevice> rank_device;
  // Keeps what it needs of the device.
  BackendFactory make_backend;
  // Memory that a rank's weights will take there; empty: as much as stored ones.
  WeightMeasure weight_bytes;
  // Which one that will be, for --print-config; may be empty.
  std::function<absl::StatusOr<std::string>(const Model&)> describe_backend;
};

// One line with the way out if this executable does not serve --device or --backend, or the machine
// lacks the device. Called once, before the process has threads.
// `kept_folder`: where weights are kept for the next start; empty: nowhere.
absl::StatusOr<Platform> OpenPlatform(const options::Values& values,
                                      const std::string& kept_folder);

// Threads of this rank's CPU work: --cpu-threads, or its share of the process's cores.
std::uint32_t CpuThreads(const options::Values& values);

}  // namespace penstock::shard
