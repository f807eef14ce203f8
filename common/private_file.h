// Files with secrets.
#pragma once

#include <string>

namespace penstock {

// A warning if users other than the owner of the file may read or change it; else empty. `where`
// begins it: "--tls-key /etc/server.key".
std::string PrivateFileWarning(const std::string& where, const std::string& path);

}  // namespace penstock
