// Turns the options of the server into a command line for each process. Pure: facts about the
// machine are arguments.
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
  bool cuda_shard = false;   // penstock-shard-cuda lies beside the launcher
  bool torch_shard = false;  // penstock-shard-torch does
  bool has_kernels = true;   // the processor has the instructions of backend cpu
};

struct LaunchPlan {
  std::vector<ChildSpec> shards;  // by group, then by rank
  ChildSpec router;
};

// Passes every set option to the programs that take it. Divides --cpu-threads (by default the
// cores, at least one a rank) and --kv-cache-memory equally among all ranks of this host. With
// `auto`, each shard divides the memory by --local-ranks. An error if a part is below its limit.
//
// Shards with backend reference are penstock-shard-torch, those on GPUs penstock-shard-cuda. Each
// rank gets one GPU through CUDA_VISIBLE_DEVICES, in the order of groups and ranks, and the memory
// options apply to that GPU. With --device cuda, too few GPUs are an error, unless --share-gpus is
// set.
absl::StatusOr<LaunchPlan> MakeLaunchPlan(const options::Values& values, const Machine& machine);

// Whether the shards compute on GPUs: --device cuda, or auto if each rank can have one.
bool UsesGpus(const options::Values& values, const Machine& machine);

// Whether the shards on CPUs are penstock-shard-torch: they need backend reference.
bool NeedsTorch(const options::Values& values, const Machine& machine);

// Whether a Python child of each shard computes the model: --engine transformers.
bool UsesTransformers(const options::Values& values);

// Whether the shards are penstock-simshard, which needs no weights.
bool UsesSimulatedShards(const options::Values& values);

}  // namespace penstock::launcher
