// The API keys and their names. The name of a key is the tenant: it salts the prefix cache and
// appears in logs and metrics. Of the key itself only a hash is kept.
#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "router/api/tenant_limits.h"

namespace penstock::router {

// Immutable.
class ApiKeys {
 public:
  static constexpr std::string_view kDefaultName = "default";  // of --api-key
  static constexpr std::size_t kMaxKeys = 4096;

  // `single`: a key named "default"; empty: none. `lines`: `name:key` each; empty lines and those
  // that begin with '#' do not count. A name is 1 to 64 of letters, digits, '.', '_' and '-'; the
  // key is everything after the first ':'. Names and keys must differ. Errors name the line, never
  // the key; `where` names the file in them.
  static absl::StatusOr<ApiKeys> Parse(std::string_view single, std::string_view lines = {},
                                       std::string_view where = {});

  // The same with a file (none when `path` is empty): lines, or the tenants of tenant_file.h. Warns
  // when others than the owner may read it.
  static absl::StatusOr<ApiKeys> Load(const std::string& single, const std::string& path);

  bool empty() const { return keys_.empty(); }
  std::size_t size() const { return keys_.size(); }

  // The name of a key; nothing for a wrong one. Compares hashes, all of them, each to its end: the
  // time tells neither how much of a key was right nor which one it is.
  std::optional<std::string_view> NameOf(std::string_view key) const;

  // For readers of other forms. Errors as of Parse, without the place. AddTenant: the name is new.
  absl::Status Add(std::string_view name, std::string_view key);
  absl::Status AddTenant(std::string_view name, const TenantLimits& limits,
                         const std::vector<std::string>& keys);
  void SharePrefixes() { shares_prefixes_ = true; }
  // Tenants without a queue_share of their own get a half, if there are several.
  void SetQueueShares(const std::vector<std::string>& names);

  // Whether the keys come from a file of tenants: then each tenant has limits.
  bool has_tenants() const { return !tenants_.empty(); }
  // Null: it has none.
  const TenantLimits* LimitsOf(std::string_view name) const;
  // Whether all tenants may read what one of them left in the prefix cache.
  bool shares_prefixes() const { return shares_prefixes_; }

  // Whether both hold the same names, keys and limits in the same order.
  bool operator==(const ApiKeys&) const = default;

 private:
  using Hash = std::array<unsigned char, 32>;
  struct Key {
    std::string name;
    Hash hash;

    bool operator==(const Key&) const = default;
  };

  static Hash HashOf(std::string_view key);
  absl::Status CheckNew(std::string_view name, std::string_view key) const;
  absl::Status AddLine(std::string_view line);

  std::vector<Key> keys_;
  std::map<std::string, TenantLimits, std::less<>> tenants_;
  bool shares_prefixes_ = false;
};

// The keys that count now. Thread-safe.
class KeyRing {
 public:
  explicit KeyRing(ApiKeys keys = {}) : keys_(std::make_shared<const ApiKeys>(std::move(keys))) {}

  std::shared_ptr<const ApiKeys> Get() const {
    const std::lock_guard lock(mutex_);
    return keys_;
  }
  void Set(ApiKeys keys) {
    auto fresh = std::make_shared<const ApiKeys>(std::move(keys));
    const std::lock_guard lock(mutex_);
    keys_ = std::move(fresh);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const ApiKeys> keys_;
};

}  // namespace penstock::router
