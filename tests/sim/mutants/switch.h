// The run-time switch of planted bugs. plant_bugs.py writes PENSTOCK_MUTANT("name") into a copy of
// scheduler/; the product has no such text.
//
// Threads: every thread switches its own bug.
#pragma once

#include <cstdlib>
#include <string>

namespace penstock::scheduler {

// The bug that is on in this thread. Empty: none.
void ChooseMutant(const std::string& name);

// One use of PENSTOCK_MUTANT.
class MutantHook {
 public:
  explicit MutantHook(const char* name);
  bool chosen() const;

 private:
  int id_;
};

// Whether the core asked for this bug, on or off.
bool MutantReached(const std::string& name);

}  // namespace penstock::scheduler

#define PENSTOCK_MUTANT(name)                                  \
  ([]() -> bool {                                              \
    static const ::penstock::scheduler::MutantHook hook(name); \
    return hook.chosen();                                      \
  }())
