// --shard-tls-cert, --shard-tls-key and --shard-tls-ca, the same on router and shards.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "common/options/values.h"
#include "common/tls_identity.h"

namespace penstock::options {

// Reads the three files. Null when none is set; an error when one is missing or cannot be read,
// or when the key is not the certificate's.
absl::StatusOr<std::shared_ptr<const TlsIdentity>> ReadShardTls(const Values& values);

}  // namespace penstock::options
