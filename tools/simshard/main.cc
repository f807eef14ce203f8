#include <optional>

#include "common/notify.h"
#include "common/options/log_setup.h"
#include "common/options/values.h"
#include "shard/service/run_shards.h"
#include "tools/simshard/sim_options.h"

int main(int argc, char** argv) {
  using namespace penstock;
  const options::CommandLine line =
      options::ReadCommandLine(options::ProgramFor(options::kSimshard), argc, argv);
  if (line.exit_code.has_value()) return *line.exit_code;
  options::ConfigureLog(line.values, "simshard-" + line.values.TextOf("rank"));
  const Notifier notifier = Notifier::FromEnvironment();
  return shard::RunShards(simshard::MakeEngines(line.values),
                          line.values.GetString("shard-uds-path"), notifier);
}
