#include "cli/doctor/program_checks.h"

#include <filesystem>

#include "common/version.h"
#include "launcher/child_output.h"

namespace penstock::cli {
namespace {

// "0.1.0" of "penstock-router 0.1.0".
std::string VersionOf(const std::string& program) {
  launcher::ChildSpec spec;
  spec.program = program;
  spec.arguments = {"--version"};
  const auto said = launcher::RunForOutput(spec);
  if (!said.ok() || !said->exit || said->exit->by_signal || said->exit->code != 0) return "";
  const std::string line = said->text.substr(0, said->text.find('\n'));
  return line.substr(line.rfind(' ') + 1);
}

}  // namespace

Finding CheckVersions(const std::map<std::string, std::string>& versions) {
  const std::string own(Version());
  for (const auto& [program, version] : versions) {
    if (version == own) continue;
    if (version.empty()) {
      return Bad(program + " cannot be started", "installing Penstock again, or `make build`");
    }
    return Bad(program + " is version " + version + ", but penstock is " + own,
               "installing all programs of one version");
  }
  return Good("all programs are version " + own);
}

Finding CheckPrograms(const launcher::Machine& machine) {
  std::map<std::string, std::string> versions;
  for (const char* name : {"penstock-launcher", "penstock-router", "penstock-shard"}) {
    versions[name] = VersionOf(machine.program_dir + "/" + name);
  }
  return CheckVersions(versions);
}

Finding CheckDevice(const options::Values& values, const launcher::Machine& machine) {
  if (!launcher::UsesGpus(values, machine)) return Good("the shards compute on the CPU");
  std::error_code error;
  if (!std::filesystem::exists("/dev/nvidiactl", error) || machine.gpus.empty()) {
    return Bad("--device cuda: no NVIDIA driver is loaded, or no GPU is visible",
               "installing the driver (nvidia-smi shows it), docker run --gpus all, or --device "
               "cpu");
  }
  if (!machine.cuda_shard && values.GetString("shard-program").empty()) {
    return Bad("--device cuda: penstock-shard-cuda is not installed",
               "the package for GPUs or `make cuda`");
  }
  return Good(std::to_string(machine.gpus.size()) + " GPUs are visible");
}

}  // namespace penstock::cli
