#include "shard/app/shard_options.h"

#include <sched.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "shard/app/backend_choice.h"

namespace penstock::shard {
namespace {

std::uint32_t CoresOfThisProcess() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&cores)));
}

std::uint32_t Number(const options::Values& values, std::string_view name) {
  return static_cast<std::uint32_t>(values.GetInt(name));
}

KvMemory ReadKvMemory(const options::Values& values) {
  const auto amount = values.FindMemory("kv-cache-memory");
  if (!amount.has_value()) return {};
  return {static_cast<std::uint64_t>(amount->bytes), amount->share};
}

}  // namespace

absl::StatusOr<ModelEngineOptions> ReadShardOptions(const options::Values& values) {
  if (values.GetString("device") == "cuda") {
    return absl::UnimplementedError(
        "`device` must be auto or cpu: the executable for CUDA is penstock-shard-cuda, which is "
        "not "
        "part of this build. Given: cuda");
  }
  ModelEngineOptions options;
  options.model.folder = values.GetString("model-id");
  options.model.dtype = ParseDType(values.GetString("dtype"));  // nothing for "auto"
  options.model.rank = Number(values, "rank");
  options.model.world = Number(values, "world-size");
  options.block_size = Number(values, "block-size");
  options.padded = values.GetString("kv-layout") == "padded";
  options.local_ranks = Number(values, "local-ranks");
  options.kv = ReadKvMemory(values);
  options.contrastive_search = values.GetBool("contrastive-search");
  const std::uint32_t share = CoresOfThisProcess() / options.local_ranks;
  const std::uint32_t threads =
      static_cast<std::uint32_t>(values.FindInt("cpu-threads").value_or(std::max(1u, share)));
  options.grammars = !values.GetBool("disable-grammar-support");
  options.watermark = {values.GetDouble("watermark-gamma"), values.GetDouble("watermark-delta")};
  options.make_backend = BackendChoice({values.GetString("backend"), options.block_size,
                                        options.padded, threads, options.model.device});
  return options;
}

}  // namespace penstock::shard
