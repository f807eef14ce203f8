// Priority of threads that compute in the background.
#pragma once

namespace penstock {

// Gives the calling thread a quarter of a processor that other threads want (nice 5), until the
// thread ends. The thread may hold locks: it always makes progress.
void UseBackgroundPriority();

// The old name.
inline void StepAside() { UseBackgroundPriority(); }

// Makes the calling thread run only when no other thread wants the processor, until it ends. It must
// hold no lock, since it may not run for as long as the machine is busy.
void StepBack();

}  // namespace penstock
