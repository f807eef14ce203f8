// Reads and checks the files of --shard-tls-* (between router and shards) and of --tls-* (the HTTP
// listener) before a connection needs them.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/options/values.h"
#include "common/tls_identity.h"

namespace penstock::options {

using TlsFiles = absl::StatusOr<std::shared_ptr<const TlsIdentity>>;

// Null if none of the three options is set. An error if only some are set, if a file cannot be
// read, or if the key is not that of the certificate.
TlsFiles ReadShardTls(const Values& values);

// The same for --tls-cert and --tls-key; --tls-client-ca may be absent, then `authority` is empty.
TlsFiles ReadHttpTls(const Values& values);

// A warning if the first certificate of a PEM text is not valid now or expires within two weeks;
// else empty.
std::string CertificateWarning(const std::string& pem);

// When the first certificate of a PEM text ends, in seconds since 1970.
std::optional<std::int64_t> CertificateEnd(const std::string& pem);

}  // namespace penstock::options
