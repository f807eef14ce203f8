// Assertions that stay on in every build. A failed one is a bug of Penstock: no client input can
// cause it. The process stops, since a scheduler with wrong counts would give wrong answers.
#pragma once

#include <stdexcept>

// `invariant` says what must hold, as in docs/scheduling-guarantees.md.
#define PENSTOCK_CHECK(condition, invariant)                              \
  do {                                                                    \
    if (!(condition)) {                                                   \
      ::penstock::FailCheck(__FILE__, __LINE__, (invariant), #condition); \
    }                                                                     \
  } while (false)

namespace penstock {

struct BrokenInvariant : std::logic_error {
  using std::logic_error::logic_error;
};

// Prints and aborts. While the thread has a ThrowBrokenInvariants, throws BrokenInvariant instead.
[[noreturn]] void FailCheck(const char* file, int line, const char* invariant,
                            const char* condition);

// For the simulator, which reports the seed of a failure: while an object exists, a failed
// assertion of this thread throws. The scheduler that threw must not be used again.
class ThrowBrokenInvariants {
 public:
  ThrowBrokenInvariants();
  ~ThrowBrokenInvariants();
  ThrowBrokenInvariants(const ThrowBrokenInvariants&) = delete;
  ThrowBrokenInvariants& operator=(const ThrowBrokenInvariants&) = delete;
};

}  // namespace penstock
