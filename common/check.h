// Assertion for our own mistakes, on in every build: a scheduler that has lost count of its blocks
// must stop, not serve garbage. Never reached by client input.
#pragma once

#include <stdexcept>

// `invariant` says in words what must hold, as in docs/scheduling-guarantees.md.
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

// Prints and aborts; in a thread that asked for it, throws BrokenInvariant.
[[noreturn]] void FailCheck(const char* file, int line, const char* invariant,
                            const char* condition);

// For the simulator, which reports the seed and shrinks the run: a broken invariant of this thread
// becomes an exception while an object lives. The scheduler that threw must not be used again.
class ThrowBrokenInvariants {
 public:
  ThrowBrokenInvariants();
  ~ThrowBrokenInvariants();
  ThrowBrokenInvariants(const ThrowBrokenInvariants&) = delete;
  ThrowBrokenInvariants& operator=(const ThrowBrokenInvariants&) = delete;
};

}  // namespace penstock
