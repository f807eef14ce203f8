// Planted bugs. `if (PENSTOCK_MUTANT("name"))` is the one line that a bug needs; in product builds
// it is the constant false and leaves no trace. In the library penstock_scheduler_mutants, compiled
// from the same sources, one bug at a time is switched on at run time (docs: CONTRIBUTING.md).
//
// Only in .cc files: a header that is also compiled without mutants would have two meanings.
#pragma once

#ifdef PENSTOCK_MUTANTS

#include <string>

namespace penstock::scheduler {

// The bug that is switched on in this thread; empty = none.
void ChooseMutant(const std::string& name);

class MutantHook {
 public:
  explicit MutantHook(const char* name);  // registers the name
  bool chosen() const;

 private:
  int id_;
};

// Whether a hook of this name has been passed, chosen or not.
bool MutantReached(const std::string& name);

}  // namespace penstock::scheduler

#define PENSTOCK_MUTANT(name)                                  \
  ([]() -> bool {                                              \
    static const ::penstock::scheduler::MutantHook hook(name); \
    return hook.chosen();                                      \
  }())

#else

#define PENSTOCK_MUTANT(name) false

#endif
