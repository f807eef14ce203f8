#include <absl/synchronization/mutex.h>

#include "common/notify.h"
#include "common/options/log_setup.h"
#include "common/options/values.h"
#include "router/main/app.h"

int main(int argc, char** argv) {
  // gRPC's locks: distributions build Abseil with the search for deadlocks, at every lock, left on.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  using namespace penstock;
  const options::CommandLine line =
      options::ReadCommandLine(options::ProgramAs(options::kRouter, argv[0]), argc, argv);
  if (line.exit_code.has_value()) return *line.exit_code;
  options::ConfigureLog(line.values, "router");
  const Notifier notifier = Notifier::FromEnvironment();
  return router::RunRouter(line.values, notifier);
}
