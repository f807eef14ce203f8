#include "common/thread_priority.h"

#include <sys/resource.h>
#include <unistd.h>

namespace penstock {
namespace {

constexpr int kNice = 5;

}  // namespace

// Linux counts nice values for each thread. Raising the value needs no privilege.
void UseBackgroundPriority() { ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice); }

}  // namespace penstock
