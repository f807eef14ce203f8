// Names of threads, as `top -H` and profilers show them.
#pragma once

#include <pthread.h>

namespace penstock {

// The calling thread; at most 15 characters.
inline void NameThread(const char* name) { ::pthread_setname_np(::pthread_self(), name); }

}  // namespace penstock
