#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/exit_codes.h"
#include "common/kept_file.h"
#include "common/notify.h"
#include "common/options/log_setup.h"
#include "common/options/values.h"
#include "common/socket_names.h"
#include "common/status.h"
#include "shard/app/memory_report.h"
#include "shard/app/platform.h"
#include "shard/app/shard_options.h"
#include "shard/service/run_shards.h"
#include "shard/tgi/tgi_driver.h"

int main(int argc, char** argv) {
  using namespace penstock;
  const options::CommandLine line =
      options::ReadCommandLine(options::ProgramFor(options::kShard), argc, argv);
  if (line.exit_code.has_value()) {
    if (line.values.GetBool("print-config"))
      std::fputs(shard::BackendLine(line.values).c_str(), stdout);
    return *line.exit_code;
  }
  if (line.values.GetBool("memory-plan")) return shard::PrintMemoryReport(line.values);
  const std::optional<std::int64_t> group = line.values.FindInt("group");
  options::ConfigureLog(line.values, ShardName(group, line.values.GetInt("rank")));
  const Notifier notifier = Notifier::FromEnvironment();
  std::string kept_folder = line.values.GetString("weights-cache");
  if (!kept_folder.empty()) kept_folder = OpenKeptFolder("weights-cache", kept_folder);
  auto platform = shard::OpenPlatform(line.values, kept_folder);
  if (!platform.ok()) {
    notifier.Failed(Message(platform.status()));
    return absl::IsInvalidArgument(platform.status()) ? kExitUsage : kExitDevice;
  }
  shard::ModelRankOptions engine_options =
      shard::ReadShardOptions(line.values, *std::move(platform), kept_folder);
  engine_options.on_plan = [&notifier](const std::string& plan) { notifier.MemoryPlan(plan); };
  const auto listen = shard::ReadShardListen(line.values);
  if (!listen.ok()) {
    notifier.Failed(Message(listen.status()));
    return kExitUsage;
  }
  std::vector<shard::HostedShard> shards;
  const std::string folder = engine_options.model.folder;
  shards.push_back({std::make_unique<shard::ModelRank>(std::move(engine_options)),
                    listen->At(group, 0), shard::TgiDriverFactory(folder)});
  return shard::RunShards(std::move(shards), notifier);
}
