#include "launcher/runtime_environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include "common/version.h"
#include "launcher/machine.h"

namespace penstock::launcher {
namespace {

// What a program prints, without the last line break; "N/A" when there is none or it fails.
std::string OutputOf(const std::string& program) {
  const std::string command = "exec timeout 10 " + program + " 2>/dev/null";
  std::FILE* pipe = ::popen(command.c_str(), "re");
  if (pipe == nullptr) return "N/A";
  std::string text;
  std::array<char, 4096> buffer;
  for (std::size_t size = 0; (size = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    text.append(buffer.data(), size);
  }
  if (::pclose(pipe) != 0) return "N/A";
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? "N/A" : text;
}

std::string Processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "N/A";
}

std::string System() {
  utsname name = {};
  if (::uname(&name) != 0) return "N/A";
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

std::string Memory() {
  const long long pages = ::sysconf(_SC_PHYS_PAGES);
  return std::to_string((pages * ::sysconf(_SC_PAGESIZE)) >> 20) + " MiB";
}

}  // namespace

std::string RuntimeEnvironment(bool as_tgi) {
  std::string text = "Runtime environment:\n";
  text += "Target: x86_64-unknown-linux-gnu\n";
  if (as_tgi) text += "Cargo version: N/A\nCommit sha: N/A\nDocker label: N/A\n";
  std::vector<std::string> programs = {"nvidia-smi"};
  if (as_tgi) programs.insert(programs.end(), {"xpu-smi", "hpu-smi"});
  for (const std::string& program : programs) text += program + ":\n" + OutputOf(program) + "\n";
  text += "Penstock: " + std::string(Version()) + ", g++ " + __VERSION__ + "\n";
  text += "System: " + System() + "\n";
  text += "Processor: " + Processor() + ", " + std::to_string(UsableCores()) + " cores to use\n";
  text += "Memory: " + Memory();
  return text;
}

}  // namespace penstock::launcher
