#include "router/api/tenant_file.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/status.h"
#include "router/http/text.h"

namespace penstock::router {
namespace {

constexpr char kTenants[] = "tenants";
constexpr char kPrefixCache[] = "prefix_cache";

// A value at fault; caught in ParseTenants.
struct BadValue {
  YAML::Mark mark;
  std::string what;
};

template <class T>
std::optional<T> NumberIn(const std::string& text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
T Number(const YAML::Node& node, const std::string& field, T least, T most,
         const std::string& limits) {
  const auto value = node.IsScalar() ? NumberIn<T>(node.Scalar()) : std::nullopt;
  if (value && *value >= least && *value <= most) return *value;
  const std::string given = node.IsScalar() ? node.Scalar().substr(0, 40) : "no plain value";
  throw BadValue{node.Mark(), field + " must be " + limits + ". Given: " + given};
}

struct Tenant {
  TenantLimits limits;
  std::vector<std::string> keys;
  bool has_queue_share = false;
};

std::string KeyIn(const YAML::Node& node, const std::string& field) {
  if (node.IsScalar() && !node.Scalar().empty()) return node.Scalar();
  throw BadValue{node.Mark(), field + " must be a non-empty text"};
}

void ReadField(const std::string& owner, const std::string& name, const YAML::Node& node,
               Tenant& tenant) {
  const std::string field = owner + "." + name;
  TenantLimits& limits = tenant.limits;
  if (name == "key") {
    tenant.keys.push_back(KeyIn(node, field));
  } else if (name == "keys") {
    if (!node.IsSequence()) throw BadValue{node.Mark(), field + " must be a list of keys"};
    for (const YAML::Node& key : node) tenant.keys.push_back(KeyIn(key, field));
  } else if (name == "weight") {
    limits.weight = Number<std::uint32_t>(node, field, 1, TenantLimits::kMaxWeight,
                                          "a whole number from 1 to 1000");
  } else if (name == "max_requests") {
    limits.max_requests =
        Number<std::uint32_t>(node, field, 1, 65536, "a whole number from 1 to 65536");
  } else if (name == "tokens_per_minute") {
    limits.tokens_per_minute = Number<std::uint64_t>(node, field, 1, 1'000'000'000'000,
                                                     "a whole number from 1 to 1000000000000");
  } else if (name == "queue_share") {
    limits.queue_share = Number<double>(node, field, 0.001, 1, "a number from 0.001 to 1");
    tenant.has_queue_share = true;
  } else if (name == "max_priority") {
    limits.max_priority = Number<std::int32_t>(node, field, INT32_MIN, INT32_MAX,
                                               "a whole number from -2147483648 to 2147483647");
  } else {
    throw BadValue{node.Mark(), field.substr(0, 100) +
                                    " is unknown; a tenant has key, keys, weight, max_requests, "
                                    "tokens_per_minute, queue_share and max_priority"};
  }
}

Tenant ReadTenant(const std::string& name, const YAML::Node& node) {
  if (!node.IsMap()) throw BadValue{node.Mark(), name + " must be a map with a key"};
  Tenant tenant;
  std::set<std::string> seen;
  for (const auto& entry : node) {
    const YAML::Node& field = entry.first;
    if (!field.IsScalar()) throw BadValue{field.Mark(), name + " must have plain names"};
    if (!seen.insert(field.Scalar()).second) {
      throw BadValue{field.Mark(), name + "." + field.Scalar() + " is given twice"};
    }
    ReadField(name, field.Scalar(), entry.second, tenant);
  }
  if (tenant.keys.empty()) throw BadValue{node.Mark(), name + " must have `key` or `keys`"};
  return tenant;
}

void ReadTenants(const YAML::Node& node, ApiKeys& keys) {
  if (!node.IsMap() || node.size() == 0) {
    throw BadValue{node.Mark(), "tenants must be a map from names to tenants, with at least one"};
  }
  std::vector<std::string> by_default;
  for (const auto& entry : node) {
    const YAML::Node& name = entry.first;
    const std::string owner = name.IsScalar() ? name.Scalar().substr(0, 100) : "";
    const Tenant tenant = ReadTenant(owner, entry.second);
    if (owner == ApiKeys::kDefaultName || keys.LimitsOf(owner) != nullptr) {
      throw BadValue{name.Mark(), "the name " + owner + " is taken"};
    }
    const absl::Status added = keys.AddTenant(owner, tenant.limits, tenant.keys);
    if (!added.ok()) throw BadValue{name.Mark(), Message(added)};
    if (!tenant.has_queue_share) by_default.push_back(owner);
  }
  keys.SetQueueShares(by_default);
}

void ReadPrefixCache(const YAML::Node& node, ApiKeys& keys) {
  const std::string value = node.IsScalar() ? node.Scalar() : "";
  if (value == "shared") return keys.SharePrefixes();
  if (value == "tenant") return;
  throw BadValue{node.Mark(), "prefix_cache must be tenant or shared. Given: " + value};
}

void ReadRoot(const YAML::Node& root, ApiKeys& keys) {
  if (!root.IsMap() || !root[kTenants]) throw BadValue{root.Mark(), "must have the key `tenants`"};
  std::set<std::string> seen;
  for (const auto& entry : root) {
    const YAML::Node& name = entry.first;
    const std::string key = name.IsScalar() ? name.Scalar().substr(0, 100) : "";
    if (!seen.insert(key).second) throw BadValue{name.Mark(), key + " is given twice"};
    if (key == kTenants) {
      ReadTenants(entry.second, keys);
    } else if (key == kPrefixCache) {
      ReadPrefixCache(entry.second, keys);
    } else {
      throw BadValue{name.Mark(), "`" + key +
                                      "` is unknown; there are `tenants` and "
                                      "`prefix_cache`"};
    }
  }
}

std::string Place(const std::string& where, const YAML::Mark& mark) {
  return mark.is_null() ? where : where + ":" + std::to_string(mark.line + 1);
}

}  // namespace

bool IsTenantFile(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    line = line.substr(0, line.find('#'));
    while (line.ends_with('\r') || line.ends_with(' ')) line.remove_suffix(1);
    if (line == "tenants:") return true;
  }
  return false;
}

absl::StatusOr<ApiKeys> ParseTenants(std::string_view single, const std::string& text,
                                     const std::string& where) {
  PENSTOCK_ASSIGN_OR_RETURN(ApiKeys keys, ApiKeys::Parse(single));
  try {
    ReadRoot(YAML::Load(text), keys);
  } catch (const BadValue& bad) {
    return absl::InvalidArgumentError(Place(where, bad.mark) + ": " + bad.what);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(Place(where, error.mark) + ": not YAML: " + error.msg);
  }
  return keys;
}

}  // namespace penstock::router
