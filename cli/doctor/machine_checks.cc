#include "cli/doctor/machine_checks.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/timex.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>

#include "common/human_bytes.h"

namespace penstock::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNoLimit = 1ull << 60;  // cgroup v1 writes a number above it
constexpr std::uint64_t kLeastFiles = 1024;
constexpr std::uint64_t kLeastMemory = 256ull << 20;
constexpr std::uint64_t kLeastShared = 32ull << 20;  // of each rank
constexpr std::int64_t kDay = 86400;
constexpr std::int64_t kYear2024 = 1704067200;

// The newest change of a file of the folder; 0: there is none.
std::int64_t NewestFile(const std::string& folder) {
  std::int64_t newest = 0;
  std::error_code error;
  if (folder.empty()) return 0;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    struct stat info = {};
    if (::stat(entry.path().c_str(), &info) == 0) {
      newest = std::max<std::int64_t>(newest, info.st_mtime);
    }
  }
  return newest;
}

bool IsSynchronised() {
  timex state = {};
  return ::adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
}

}  // namespace

Finding CheckInstructions(bool avx2_and_fma) {
  if (avx2_and_fma) return Good("the processor has AVX2 and FMA");
  return Bad("this processor has no AVX2 and FMA, which penstock-shard needs",
             "another machine, or `make torch` and --backend reference");
}

Finding CheckOpenFiles(std::uint64_t hard) {
  if (hard >= kLeastFiles) return Good("open files: at most " + std::to_string(hard));
  return Bad("a process may open " + std::to_string(hard) +
                 " files (`ulimit -Hn`), and each client needs one",
             "a limit of " + std::to_string(kLeastFiles) + " or more (LimitNOFILE= of systemd)");
}

Finding CheckAddressLimit(std::uint64_t bytes, std::uint64_t machine_bytes) {
  if (bytes >= machine_bytes) return Good("no `ulimit -v` below the machine's memory");
  return Bad("`ulimit -v` allows " + HumanBytes(bytes) + " of address space for each process",
             "`ulimit -v unlimited` in the shell or service that starts the server");
}

Finding CheckMemoryGroups(const std::vector<MemoryGroup>& groups) {
  std::optional<std::uint64_t> least;
  std::string file;
  for (const MemoryGroup& group : groups) {
    if (group.limit_bytes.value_or(kNoLimit) >= least.value_or(kNoLimit)) continue;
    least = group.limit_bytes;
    file = group.limit_file;
  }
  if (!least) return Good("no control group bounds the memory");
  if (*least >= kLeastMemory) return Good("memory: " + HumanBytes(*least) + " by " + file);
  return Bad("the control group allows " + HumanBytes(*least) + " of memory (" + file + ")",
             "a larger limit of the container (docker run --memory, MemoryMax= of systemd)");
}

Finding CheckSharedMemory(std::uint64_t free_bytes, std::int64_t ranks) {
  if (ranks <= 1) return Good("/dev/shm is not used by one rank");
  const std::uint64_t needed = kLeastShared * static_cast<std::uint64_t>(ranks);
  if (free_bytes >= needed) return Good("/dev/shm has " + HumanBytes(free_bytes) + " free");
  return Bad(
      "/dev/shm has " + HumanBytes(free_bytes) + " free for " + std::to_string(ranks) + " ranks",
      "docker run --shm-size 1g, or a larger tmpfs on /dev/shm");
}

Finding CheckClock(std::int64_t now, std::int64_t newest_file, bool synchronised) {
  if (now < kYear2024) {
    return Bad("the clock of this machine is before 2024, so certificates are not valid yet",
               "setting the clock (timedatectl set-ntp true)");
  }
  if (newest_file > now + kDay) {
    return Bad("files of the model are " + std::to_string((newest_file - now) / kDay) +
                   " days younger than the clock says it is",
               "setting the clock (timedatectl set-ntp true)");
  }
  return Good(synchronised ? "the clock is synchronised"
                           : "the clock is plausible; the kernel does not know whether it is "
                             "synchronised");
}

Finding CheckProxy(const std::function<const char*(const char*)>& environment) {
  std::string exempt;
  for (const char* name : {"no_proxy", "NO_PROXY"}) {
    if (const char* value = environment(name); value != nullptr) exempt += std::string(value) + ",";
  }
  const bool local = exempt.find("127.0.0.1") != exempt.npos ||
                     exempt.find("localhost") != exempt.npos || exempt == "*,";
  for (const char* name : {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"}) {
    const char* value = environment(name);
    if (value == nullptr || *value == '\0' || local) continue;
    return Bad(
        std::string(name) + "=" + value + " also catches requests of clients to this machine",
        "no_proxy=localhost,127.0.0.1");
  }
  return Good("no proxy catches requests to this machine");
}

Findings CheckMachine(std::int64_t ranks, const std::string& model_folder) {
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  rlimit space = {};
  ::getrlimit(RLIMIT_AS, &space);
  struct sysinfo machine = {};
  ::sysinfo(&machine);
  const std::uint64_t memory = std::uint64_t{machine.totalram} * machine.mem_unit;
  struct statvfs shared = {};
  const bool known = ::statvfs("/dev/shm", &shared) == 0;
  return {CheckInstructions(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")),
          CheckOpenFiles(files.rlim_max),
          CheckAddressLimit(space.rlim_cur, memory),
          CheckMemoryGroups(MemoryGroups()),
          CheckSharedMemory(known ? std::uint64_t{shared.f_bavail} * shared.f_frsize : 0, ranks),
          CheckClock(std::time(nullptr), NewestFile(model_folder), IsSynchronised()),
          CheckProxy([](const char* name) { return std::getenv(name); })};
}

}  // namespace penstock::cli
