#include "shard/backend/cpu/background.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>

namespace penstock::shard::cpu {
namespace {

// Since Linux 6.4 the first touch of memory holds up nobody who maps other memory. Before, a thread
// that waited long for its processor in the middle of one would.
bool TouchingHoldsNobodyUp() {
  utsname kernel = {};
  int major = 0;
  int minor = 0;
  if (::uname(&kernel) != 0) return false;
  if (std::sscanf(kernel.release, "%d.%d", &major, &minor) != 2) return false;
  return major > 6 || (major == 6 && minor >= 4);
}

}  // namespace

void GoBehindEverythingElse() {
  const sched_param none = {};
  if (TouchingHoldsNobodyUp() && ::sched_setscheduler(0, SCHED_IDLE, &none) == 0) return;
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19);
}

}  // namespace penstock::shard::cpu
