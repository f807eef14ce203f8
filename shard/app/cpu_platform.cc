#include <string>

#include "common/bad_option.h"
#include "common/log.h"
#include "shard/app/backend_choice.h"
#include "shard/app/platform.h"
#include "shard/app/transformers_platform.h"
#include "shard/backend/cpu/isa.h"

namespace penstock::shard {
namespace {

// The weight format. The former option works for one release. Only one of them is set.
std::string WeightFormatOf(const options::Values& values) {
  const std::string gemm = values.GetString("cpu-products");
  if (gemm == "auto") return values.GetString("cpu-weights");
  const std::string named = gemm == "float" ? "plain" : gemm;
  log::Warn("--cpu-products " + gemm + " is now --cpu-weights " + named);
  return named;
}

// The index among all ranks of all groups, in the order in which the launcher starts them.
std::uint32_t LocalRank(const options::Values& values) {
  const std::int64_t group = values.FindInt("group").value_or(0);
  return static_cast<std::uint32_t>(group * values.GetInt("world-size") + values.GetInt("rank"));
}

}  // namespace

absl::StatusOr<Platform> OpenPlatform(const options::Values& values,
                                      const std::string& kept_folder) {
  if (values.GetString("device") == "cuda") {
    return BadOption("device", "cuda", "auto or cpu: penstock-shard-cuda serves GPUs");
  }
  if (values.GetString("backend") == "cuda") {
    return BadOption("backend", "cuda", "auto, cpu or reference on a CPU");
  }
  if (values.GetString("engine") == "transformers") return OpenTransformersPlatform(values);
  // Checked here, since a model takes minutes to load.
  if (const auto isa = cpu::ChooseIsa(); absl::IsInvalidArgument(isa.status())) {
    return isa.status();
  }
  Platform platform;
  BackendChoiceOptions choice;
  choice.local_ranks = static_cast<std::uint32_t>(values.GetInt("local-ranks"));
  choice.local_rank = LocalRank(values) % choice.local_ranks;
  platform.rank_device = std::make_shared<HostDevice>(choice.local_ranks);
  choice.wanted = values.GetString("backend");
  choice.block_size = static_cast<std::uint32_t>(values.GetInt("block-size"));
  choice.cpu_threads = CpuThreads(values);
  choice.weight_format = WeightFormatOf(values);
  choice.weights_cache = kept_folder;
  choice.weights_cache_bytes = static_cast<std::uint64_t>(values.GetBytes("weights-cache-size"));
  platform.weight_bytes = [choice](const Model& model) { return WeightBytesOf(choice, model); };
  platform.describe_backend = [choice](const Model& model) {
    return DescribeChoice(choice, model);
  };
  platform.make_backend = BackendChoice(std::move(choice));
  return platform;
}

}  // namespace penstock::shard
