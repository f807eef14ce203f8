// Assertion for our own mistakes, on in every build: a scheduler that has lost count of its blocks
// must stop, not serve garbage. Never reached by client input.
#pragma once

#include <cstdio>
#include <cstdlib>

// `invariant` says in words what must hold, as in docs/scheduling-guarantees.md.
#define PENSTOCK_CHECK(condition, invariant)                                                      \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      std::fprintf(stderr, "%s:%d: broken invariant: %s (%s)\n", __FILE__, __LINE__, (invariant), \
                   #condition);                                                                   \
      std::abort();                                                                               \
    }                                                                                             \
  } while (false)
