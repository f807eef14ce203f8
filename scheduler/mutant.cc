#include "scheduler/mutant.h"

#ifdef PENSTOCK_MUTANTS

#include <map>
#include <mutex>

namespace penstock::scheduler {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, int> ids;      // of all names seen, chosen or passed
  std::map<std::string, bool> passed;  // by a hook
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

#endif
