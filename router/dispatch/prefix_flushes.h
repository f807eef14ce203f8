// How often each tenant has flushed the prefix cache. The scheduler separates prefixes by the name
// of a tenant, and each flush gives the tenant a new one. Blocks of the name before it are found no
// more: they are evicted as the least recently used ones.
//
// Thread-safe. An entry for each tenant that has flushed.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace penstock::router {

class PrefixFlushes {
 public:
  void Add(const std::string& tenant) {
    const std::lock_guard lock(mutex_);
    ++flushes_[tenant];
  }

  // The name of the tenant's prefixes for the scheduler: the tenant, and what a NUL parts from it.
  // If tenants share their prefixes, a tenant that has not flushed has the name of all.
  std::string Root(const std::string& tenant, bool shared) const {
    const std::lock_guard lock(mutex_);
    const auto found = flushes_.find(tenant);
    if (found == flushes_.end()) return shared ? "" : tenant;
    return tenant + kSeparator + kFlush + std::to_string(found->second);
  }

 private:
  static constexpr char kSeparator = '\0';  // that of scheduler/kv/text_regime.cc
  static constexpr char kFlush = 'f';       // begins neither a regime nor an adapter there

  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> flushes_;
};

}  // namespace penstock::router
