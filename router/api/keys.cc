#include "router/api/keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/log.h"
#include "common/private_file.h"
#include "common/status.h"
#include "router/api/tenant_file.h"
#include "router/http/text.h"

namespace penstock::router {
namespace {

constexpr std::size_t kMaxNameBytes = 64;

bool IsName(std::string_view text) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= kMaxNameBytes &&
         text.find_first_not_of(kAllowed) == text.npos;
}

// Whether a client can send the text in a header. A control character, such as the line break that
// `echo` leaves in a secret, would make it a key that fits no request.
bool FitsAHeader(std::string_view key) {
  return Trim(key) == key &&
         std::ranges::none_of(key, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }

}  // namespace

ApiKeys::Hash ApiKeys::HashOf(std::string_view key) {
  Hash hash;
  ::SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), hash.data());
  return hash;
}

absl::Status ApiKeys::CheckNew(std::string_view name, std::string_view key) const {
  if (!IsName(name)) {
    return Bad(
        "the name before the first ':' must have 1 to 64 characters: letters, digits, '.', '_' or "
        "'-'");
  }
  if (key.empty()) return Bad("the key after the first ':' must not be empty");
  if (!FitsAHeader(key)) {
    return Bad(
        "the key must hold no line break or other control character and no blank at its ends; no "
        "client can send them");
  }
  if (keys_.size() == kMaxKeys) {
    return Bad("must hold at most " + std::to_string(kMaxKeys) + " keys");
  }
  const Hash hash = HashOf(key);
  for (const Key& other : keys_) {
    if (other.hash == hash)
      return Bad(other.name + " and " + std::string(name) + " have the same key");
  }
  return absl::OkStatus();
}

absl::Status ApiKeys::Add(std::string_view name, std::string_view key) {
  for (const Key& other : keys_) {
    if (other.name == name) return Bad("the name " + other.name + " is given twice");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckNew(name, key));
  keys_.push_back({std::string(name), HashOf(key)});
  return absl::OkStatus();
}

absl::Status ApiKeys::AddTenant(std::string_view name, const TenantLimits& limits,
                                const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    PENSTOCK_RETURN_IF_ERROR(CheckNew(name, key));
    keys_.push_back({std::string(name), HashOf(key)});
  }
  tenants_.emplace(name, limits);
  return absl::OkStatus();
}

void ApiKeys::SetQueueShares(const std::vector<std::string>& names) {
  constexpr double kHalf = 0.5;
  if (tenants_.size() < 2) return;
  for (const std::string& name : names) tenants_.at(name).queue_share = kHalf;
}

const TenantLimits* ApiKeys::LimitsOf(std::string_view name) const {
  const auto found = tenants_.find(name);
  return found == tenants_.end() ? nullptr : &found->second;
}

absl::Status ApiKeys::AddLine(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  line = Trim(line);
  if (line.empty() || line.front() == '#') return absl::OkStatus();
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return Bad("must be name:key");
  return Add(Trim(line.substr(0, colon)), Trim(line.substr(colon + 1)));
}

absl::StatusOr<ApiKeys> ApiKeys::Parse(std::string_view single, std::string_view lines,
                                       std::string_view where) {
  ApiKeys keys;
  if (!single.empty()) {
    PENSTOCK_RETURN_IF_ERROR(WithContext(keys.Add(kDefaultName, single), "--api-key ***"));
  }
  for (std::size_t number = 1; !lines.empty(); ++number) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    PENSTOCK_RETURN_IF_ERROR(
        WithContext(keys.AddLine(line), std::string(where) + ":" + std::to_string(number)));
  }
  return keys;
}

absl::StatusOr<ApiKeys> ApiKeys::Load(const std::string& single, const std::string& path) {
  if (path.empty()) return Parse(single);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file.good()) {
    return Bad("--api-keys-file " + path + ": cannot be read: " + std::strerror(errno));
  }
  const std::string warning = PrivateFileWarning("--api-keys-file " + path, path);
  if (!warning.empty()) log::Warn(warning);
  const std::string where = "--api-keys-file " + path;
  if (IsTenantFile(text.str())) return ParseTenants(single, text.str(), where);
  PENSTOCK_ASSIGN_OR_RETURN(ApiKeys keys, Parse(single, text.str(), where));
  if (keys.empty()) return Bad("--api-keys-file " + path + ": must hold at least one name:key");
  return keys;
}

std::optional<std::string_view> ApiKeys::NameOf(std::string_view key) const {
  const Hash given = HashOf(key);
  std::size_t found = keys_.size();
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const bool equal = ::CRYPTO_memcmp(given.data(), keys_[i].hash.data(), given.size()) == 0;
    found = equal ? i : found;
  }
  if (found == keys_.size()) return std::nullopt;
  return keys_[found].name;
}

}  // namespace penstock::router
