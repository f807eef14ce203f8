// penstock-router, also as text-generation-router. With `print-schema` after its options it prints
// the OpenAPI document of its routes and exits.
#include <absl/synchronization/mutex.h>
#include <signal.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "common/exit_codes.h"
#include "common/notify.h"
#include "common/options/log_setup.h"
#include "common/options/values.h"
#include "common/version.h"
#include "router/api/docs/openapi.h"
#include "router/main/app.h"

int main(int argc, char** argv) {
  // Distributions build Abseil with deadlock detection, which costs gRPC time at every lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  using namespace penstock;
  if (argc > 1 && std::string_view(argv[argc - 1]) == "print-schema") {
    const bool as_tgi = options::ProgramAs(options::kRouter, argv[0]).profile != nullptr;
    const router::DialectSet dialects = router::MakeDialects({.tgi_only = as_tgi});
    std::puts(router::docs::OpenApi(dialects, std::string(Version())).c_str());
    return kExitOk;
  }
  const options::CommandLine line =
      options::ReadCommandLine(options::ProgramAs(options::kRouter, argv[0]), argc, argv);
  if (line.exit_code.has_value()) return *line.exit_code;
  options::ConfigureLog(line.values, "router");
  ::signal(SIGPIPE, SIG_IGN);  // a client that has left must not end the process
  const Notifier notifier = Notifier::FromEnvironment();
  return router::RunRouter(line.values, notifier);
}
