#include "launcher/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <csignal>

namespace penstock::launcher {

bool SaysNoMemory(std::string_view line) {
  // Messages of the linker, the C library, C++, Rust and gRPC.
  constexpr std::string_view kTexts[] = {"failed to map segment",
                                         "annot allocate ",
                                         "std::bad_alloc",
                                         "memory allocation of ",
                                         "Could not create grpc_sync_server worker-thread",
                                         "pthread_create",
                                         "Resource temporarily unavailable"};
  return std::ranges::any_of(kTexts, [&](auto text) { return line.find(text) != line.npos; });
}

std::string AddressLimitError() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "";
  return "`ulimit -v " + std::to_string(limit.rlim_cur / 1024) +
         "` (KiB) leaves too little memory; raise it or remove it";
}

std::string MemoryLimitError(const ExitStatus& exit, const std::deque<std::string>& lines) {
  const bool silent = exit.by_signal && exit.code == SIGABRT && lines.empty();
  return silent || std::ranges::any_of(lines, SaysNoMemory) ? AddressLimitError() : "";
}

}  // namespace penstock::launcher
