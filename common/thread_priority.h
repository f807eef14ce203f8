// What the kernel's scheduler is told of a thread. Nothing here needs a privilege, changes what a
// thread may use of a processor that nobody else wants, or can fail visibly: a kernel that does not
// know a request ignores it.
#pragma once

namespace penstock {

// Gives the calling thread a quarter of a processor that other threads want (nice 5), until the
// thread ends. The thread may hold locks: it always makes progress.
void UseBackgroundPriority();

inline void StepAside() { UseBackgroundPriority(); }

// The calling thread gets out of the way of all others, for good: coming back takes a privilege.
// Only for threads that end, or that never do anything else, and that hold no lock which others
// wait for: they may stand still for as long as the machine is busy (SCHED_IDLE; before Linux 6.4,
// where a thread that stands still in its first touch of memory holds up the whole process, the
// lowest usual priority).
void StepBack();

}  // namespace penstock
