// The files of --shard-tls-* (router and shards, both ways) and of --tls-* (the HTTP listener):
// read and checked before a connection needs them.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "common/options/values.h"
#include "common/tls_identity.h"

namespace penstock::options {

using TlsFiles = absl::StatusOr<std::shared_ptr<const TlsIdentity>>;

// Null when none of the options is set; an error when a file is missing or cannot be read, or when
// the key is not the certificate's. All three belong together.
TlsFiles ReadShardTls(const Values& values);

// The same for --tls-cert and --tls-key; --tls-client-ca may be absent, then `authority` is empty.
TlsFiles ReadHttpTls(const Values& values);

// A warning for the log when the first certificate of a PEM text is not good now or will not be in
// two weeks; else empty.
std::string CertificateWarning(const std::string& pem);

}  // namespace penstock::options
