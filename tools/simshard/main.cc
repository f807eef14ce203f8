#include <cstdint>
#include <optional>
#include <utility>

#include "common/exit_codes.h"
#include "common/notify.h"
#include "common/options/log_setup.h"
#include "common/options/values.h"
#include "common/socket_names.h"
#include "common/status.h"
#include "shard/service/run_shards.h"
#include "tools/simshard/sim_options.h"

int main(int argc, char** argv) {
  using namespace penstock;
  const options::CommandLine line =
      options::ReadCommandLine(options::ProgramFor(options::kSimshard), argc, argv);
  if (line.exit_code.has_value()) return *line.exit_code;
  const std::optional<std::int64_t> group = line.values.FindInt("group");
  options::ConfigureLog(line.values, "sim" + ShardName(group, line.values.GetInt("rank")));
  const Notifier notifier = Notifier::FromEnvironment();
  auto shards = simshard::MakeShards(line.values);
  if (!shards.ok()) {
    notifier.Failed(Message(shards.status()));
    return kExitUsage;
  }
  return shard::RunShards(*std::move(shards), notifier);
}
