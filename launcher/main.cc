// penstock-launcher, also as text-generation-launcher: starts, watches and stops a server.
#include <cstdio>
#include <utility>

#include "common/options/values.h"
#include "launcher/config_file.h"
#include "launcher/launcher.h"
#include "launcher/serving/serving_properties.h"

int main(int argc, char** argv) {
  using namespace penstock;
  launcher::ServingSource serving;
  options::CommandLine cli =
      options::ReadCommandLine(options::ProgramAs(options::kLauncher, argv[0]), argc, argv,
                               launcher::ReadConfigFile, serving.Reader());
  if (cli.exit_code.has_value()) {
    if (cli.values.GetBool("print-config"))
      std::fputs(launcher::BackendLine(cli.values).c_str(), stdout);
    return *cli.exit_code;
  }
  return launcher::Launch(std::move(cli.values), serving);
}
