#include "common/options/shard_tls.h"

#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "common/status.h"

namespace penstock::options {
namespace {

absl::StatusOr<std::string> ReadPem(const Values& values, const char* option) {
  const std::string& path = values.GetString(option);
  if (path.empty()) {
    return BadValue(option, "", "given: --shard-tls-cert, -key and -ca belong together");
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || text.str().find("-----BEGIN ") == std::string::npos) {
    return BadValue(option, path, "a PEM file that can be read");
  }
  return std::move(text).str();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsIdentity>> ReadShardTls(const Values& values) {
  const bool any = values.IsSet("shard-tls-cert") || values.IsSet("shard-tls-key") ||
                   values.IsSet("shard-tls-ca");
  if (!any) return std::shared_ptr<const TlsIdentity>();
  auto identity = std::make_shared<TlsIdentity>();
  PENSTOCK_ASSIGN_OR_RETURN(identity->certificate, ReadPem(values, "shard-tls-cert"));
  PENSTOCK_ASSIGN_OR_RETURN(identity->key, ReadPem(values, "shard-tls-key"));
  PENSTOCK_ASSIGN_OR_RETURN(identity->authority, ReadPem(values, "shard-tls-ca"));
  return std::shared_ptr<const TlsIdentity>(std::move(identity));
}

}  // namespace penstock::options
