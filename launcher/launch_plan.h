// What to start: the options of the whole server turned into one command line per process. Pure:
// everything about the machine comes in as a value.
#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/options/values.h"
#include "launcher/child_process.h"

namespace penstock::launcher {

struct Machine {
  int cores = 1;              // that this process may use
  std::string program_dir;    // folder of the launcher's own executable
  std::string socket_prefix;  // of common/socket_names.h
  // Names of the GPUs that this process may use, as CUDA_VISIBLE_DEVICES has them.
  std::vector<std::string> gpus = {};
  bool cuda_shard = false;  // penstock-shard-cuda lies beside the launcher
};

struct LaunchPlan {
  std::vector<ChildSpec> shards;  // by group, then by rank
  ChildSpec router;
};

// Every set option goes to the programs that take it. The launcher divides what the ranks of this
// host share: --cpu-threads (the cores if unset, at least one each) and --kv-cache-memory (bytes
// and shares alike; `auto` is left to the shard, which knows its needs and is told the number of
// local ranks); the ranks of all --num-replicas groups share alike. An error if a part falls below
// its limit.
//
// Shards on GPUs are penstock-shard-cuda. Each rank is given one GPU, in the order of groups and
// ranks, through CUDA_VISIBLE_DEVICES, and the memory options hold for that GPU. Too few GPUs are
// an error with --device cuda, unless --share-gpus.
absl::StatusOr<LaunchPlan> MakeLaunchPlan(const options::Values& values, const Machine& machine);

// Whether the shards compute on GPUs: --device cuda, or auto if each rank can have one.
bool UsesGpus(const options::Values& values, const Machine& machine);

// Whether the shards are penstock-simshard, which needs no weights.
bool UsesSimulatedShards(const options::Values& values);

}  // namespace penstock::launcher
