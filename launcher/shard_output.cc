#include "launcher/shard_output.h"

#include <cstdlib>
#include <filesystem>

#include "common/status.h"
#include "launcher/machine.h"

namespace penstock::launcher {

absl::StatusOr<Machine> FindMachine() {
  Machine machine;
  machine.cores = UsableCores();
  machine.gpus = UsableGpus(std::getenv("CUDA_VISIBLE_DEVICES"));
  PENSTOCK_ASSIGN_OR_RETURN(machine.program_dir, ProgramFolder());
  machine.cuda_shard = std::filesystem::exists(machine.program_dir + "/penstock-shard-cuda");
  machine.torch_shard = std::filesystem::exists(machine.program_dir + "/penstock-shard-torch");
  machine.has_kernels = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return machine;
}

absl::StatusOr<ChildOutput> AskShard(const options::Values& values, Machine machine,
                                     const std::string& argument) {
  machine.socket_prefix = "unused";
  PENSTOCK_ASSIGN_OR_RETURN(LaunchPlan plan, MakeLaunchPlan(values, machine));
  ChildSpec& shard = plan.shards.front();
  shard.arguments.push_back(argument);
  return RunForOutput(shard);
}

}  // namespace penstock::launcher
