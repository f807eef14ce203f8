// Checks of the address to listen on and of its certificate.
#pragma once

#include <string>

#include "cli/doctor/finding.h"
#include "common/options/values.h"

namespace penstock::cli {

// A port that a ready server of Penstock holds, such as the service of the package, is a note.
Finding CheckPort(const std::string& host, int port);

// --tls-cert and --tls-key, if they are set.
Findings CheckTls(const options::Values& values);

// Who may read --api-keys-file. The router reads it (model_checks.h).
Findings CheckKeysFile(const options::Values& values);

}  // namespace penstock::cli
