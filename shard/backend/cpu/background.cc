#include "shard/backend/cpu/background.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace penstock::shard::cpu {

void GoBehindEverythingElse() {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19);
}

}  // namespace penstock::shard::cpu
