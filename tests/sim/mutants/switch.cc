#include "tests/sim/mutants/switch.h"

#include <map>
#include <mutex>

#include "tests/sim/mutants/mutants.h"

namespace penstock::scheduler {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, int> ids;      // of chosen bugs and of hooks
  std::map<std::string, bool> passed;  // by the core
};

Registry& TheRegistry() {
  static Registry registry;
  return registry;
}

int IdOf(const std::string& name) {
  Registry& registry = TheRegistry();
  return registry.ids.emplace(name, static_cast<int>(registry.ids.size()) + 1).first->second;
}

thread_local int chosen_id = 0;

}  // namespace

void ChooseMutant(const std::string& name) {
  const std::lock_guard lock(TheRegistry().mutex);
  chosen_id = name.empty() ? 0 : IdOf(name);
}

MutantHook::MutantHook(const char* name) {
  const std::lock_guard lock(TheRegistry().mutex);
  id_ = IdOf(name);
  TheRegistry().passed[name] = true;
}

bool MutantHook::chosen() const { return id_ == chosen_id; }

bool MutantReached(const std::string& name) {
  const std::lock_guard lock(TheRegistry().mutex);
  return TheRegistry().passed.contains(name);
}

}  // namespace penstock::scheduler

namespace penstock::sim {

void SwitchMutant(const std::string& name) { scheduler::ChooseMutant(name); }

}  // namespace penstock::sim
