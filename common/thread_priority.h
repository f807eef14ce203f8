// Priority of threads that compute in the background.
#pragma once

namespace penstock {

// Gives the calling thread a quarter of a processor that other threads want (nice 5), until the
// thread ends. The thread may hold locks: it always makes progress.
void UseBackgroundPriority();

}  // namespace penstock
