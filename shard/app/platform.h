// The difference between penstock-shard and penstock-shard-cuda: the device of the rank and its
// backends. Each program links one definition of OpenPlatform.
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
  OpenModel open_model = Model::Open;
  // Owns what it uses of the device.
  BackendFactory make_backend;
  // Memory of the weights of a rank; empty: as large as in the checkpoint.
  WeightMeasure weight_bytes;
  // The name of the backend, for --print-config; may be empty.
  std::function<absl::StatusOr<std::string>(const Model&)> describe_backend;
};

// Fails with one line that names the remedy if this program does not support --device or --backend,
// or the machine does not have the device. Called once, before the process has threads.
// `kept_folder`: where weights are kept for the next start; empty: nowhere.
absl::StatusOr<Platform> OpenPlatform(const options::Values& values,
                                      const std::string& kept_folder);

// CPU threads of this rank: --cpu-threads, or its share of the cores.
std::uint32_t CpuThreads(const options::Values& values);

}  // namespace penstock::shard
