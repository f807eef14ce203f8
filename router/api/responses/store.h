// The responses that clients may ask for again, in memory. An entry belongs to its tenant: no other
// tenant finds it.
//
// When an entry does not fit, others leave: the oldest of the tenant that holds the most bytes, so
// that one tenant cannot drive out those of the others. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace penstock::router::responses {

// Defaults are those of the options table. No entries: nothing is stored.
struct StoreLimits {
  std::size_t entries = 1024;
  std::size_t bytes = std::size_t{64} << 20;
};

struct StoredResponse {
  std::string id;
  std::shared_ptr<const std::string> input;  // a JSON array: the items before the output
  std::string object;                        // the response
  std::function<void()> cancel;              // null: it has ended
};

using StoredPtr = std::shared_ptr<const StoredResponse>;

class Store {
 public:
  explicit Store(StoreLimits limits) : limits_(limits) {}

  bool enabled() const { return limits_.entries > 0 && limits_.bytes > 0; }

  void Add(const std::string& tenant, StoredResponse response);
  // The response has ended as `object`. Nothing happens if it left the store meanwhile.
  void Finish(const std::string& tenant, const std::string& id, std::string object);
  // Null: there is none.
  StoredPtr Find(const std::string& tenant, const std::string& id) const;
  bool Remove(const std::string& tenant, const std::string& id);

  std::size_t entries() const;
  std::size_t bytes() const;

 private:
  struct Tenant {
    std::list<StoredPtr> order;  // the oldest first
    std::unordered_map<std::string, std::list<StoredPtr>::iterator> by_id;
    std::size_t bytes = 0;
  };

  // These require the mutex.
  void Drop(std::map<std::string, Tenant>::iterator tenant, std::list<StoredPtr>::iterator entry);
  void MakeRoom();

  const StoreLimits limits_;
  mutable std::mutex mutex_;
  std::map<std::string, Tenant> tenants_;  // that have entries
  std::size_t entries_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace penstock::router::responses
