#include "shard/app/shard_options.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "common/adapter_name.h"
#include "common/status.h"
#include "shard/executor/kv_layout.h"

namespace penstock::shard {
namespace {

std::uint32_t CoresOfThisProcess() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&cores)));
}

// "Intel(R) Xeon(R) Processor, 2 threads"
std::string Machine(std::uint32_t threads) {
  std::ifstream cpus("/proc/cpuinfo");
  std::string line;
  std::string name = "unknown processor";
  while (std::getline(cpus, line)) {
    if (!line.starts_with("model name")) continue;
    name = line.substr(std::min(line.size(), line.find(':') + 2));
    break;
  }
  return name + ", " + std::to_string(threads) + " threads";
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

std::uint32_t CpuThreads(const options::Values& values) {
  const std::uint32_t share = CoresOfThisProcess() / Number(values, "local-ranks");
  return static_cast<std::uint32_t>(values.FindInt("cpu-threads").value_or(std::max(1u, share)));
}

std::string BackendLine(const options::Values& values) {
  const std::string label = "# backend that runs: ";
  auto platform = OpenPlatform(values, "");
  if (!platform.ok()) return label + "none: " + Message(platform.status()) + "\n";
  const auto describe = platform->describe_backend;
  if (!describe) return "";
  const auto open = platform->open_model;
  const auto model = open(ReadShardOptions(values, *std::move(platform), "").model);
  if (!model.ok()) return label + "none: " + Message(model.status()) + "\n";
  const auto backend = describe(*model);
  return label + (backend.ok() ? *backend : "none: " + Message(backend.status())) + "\n";
}

ModelRankOptions ReadShardOptions(const options::Values& values, Platform platform,
                                  const std::string& kept_folder) {
  ModelRankOptions options;
  options.model.device = platform.device;
  options.model.folder = values.GetString("model-id");
  options.model.dtype = ParseDType(values.GetString("dtype"));  // nothing for "auto"
  options.model.quantization = ParseQuantization(values.GetString("quantize"));
  options.model.kv_type = ParseKvType(values.GetString("kv-cache-dtype")).value_or(KvType::kAuto);
  options.model.task = ParseTask(values.GetString("task"));           // nothing for "auto"
  options.model.pooling = ParsePooling(values.GetString("pooling"));  // the same
  options.model.rank = Number(values, "rank");
  options.model.world = Number(values, "world-size");
  options.block_size = Number(values, "block-size");
  if (values.GetString("kv-layout") == "padded") {
    options.kv_layout = std::make_shared<PaddedLayout>();
  }
  options.device = std::move(platform.rank_device);
  options.kv = ReadKvMemory(values);
  options.contrastive_search = values.GetBool("contrastive-search");
  options.grammars = !values.GetBool("disable-grammar-support");
  options.watermark = {values.GetDouble("watermark-gamma"), values.GetDouble("watermark-delta")};
  for (const std::string& text : values.GetList("lora")) {
    if (auto adapter = ParseAdapterFolder(text); adapter.ok()) {
      options.adapters.push_back(*std::move(adapter));
    }
  }
  options.open_model = std::move(platform.open_model);
  options.make_backend = std::move(platform.make_backend);
  options.weight_bytes = std::move(platform.weight_bytes);
  options.table_folder = kept_folder;
  options.machine = Machine(CpuThreads(values));
  return options;
}

}  // namespace penstock::shard
