#include "common/open_files.h"

#include <sys/resource.h>

namespace penstock {

// The soft limit is usually 1024, for programs that call select(). No part of Penstock does.
std::uint64_t RaiseOpenFiles() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace penstock
