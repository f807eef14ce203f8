#include "cli/doctor/address_checks.h"

#include <unistd.h>

#include "common/options/tls_files.h"
#include "common/private_file.h"
#include "common/status.h"
#include "launcher/preflight.h"
#include "launcher/running_server.h"

namespace penstock::cli {

Finding CheckPort(const std::string& host, int port) {
  constexpr int kFirstOpen = 1024;
  const std::string where = host + " port " + std::to_string(port);
  const absl::Status address = launcher::CheckAddress(host, port);
  if (address.ok()) return Good(where + " is free");
  const std::string error = Message(address);
  if (port > 0 && port < kFirstOpen && error.find("ermission denied") != error.npos) {
    return Bad(where + " is privileged: " + error,
               "a port of 1024 or more, or CAP_NET_BIND_SERVICE for penstock-router");
  }
  const auto server = port > 0 ? launcher::FindRunningServer(host, port) : std::nullopt;
  if (server && server->ready) {
    return Note(where + " is served by Penstock " + server->version + ", which is ready at " +
                server->url + " (`penstock doctor --url " + server->url +
                "` checks it); a second server needs another --port");
  }
  return Bad(error, "stopping what listens there (`ss -ltnp` names it)");
}

Findings CheckTls(const options::Values& values) {
  const auto identity = options::ReadHttpTls(values);
  if (!identity.ok()) {
    return {Bad(Message(identity.status()), "PEM files of one pair for --tls-cert and --tls-key")};
  }
  if (*identity == nullptr) return {};
  const std::string& key = values.GetString("tls-key");
  Findings findings;
  const std::string expires = options::CertificateWarning((*identity)->certificate);
  findings.push_back(expires.empty()
                         ? Good("the certificate is valid and belongs to the key")
                         : Bad("--tls-cert " + values.GetString("tls-cert") + ": " + expires,
                               "a new certificate; SIGHUP makes a server read it"));
  const std::string readers = PrivateFileWarning("--tls-key " + key, key);
  findings.push_back(readers.empty() ? Good("the key is private")
                                     : Bad(readers, "chmod 600 " + key));
  return findings;
}

Findings CheckKeysFile(const options::Values& values) {
  const std::string& path = values.GetString("api-keys-file");
  if (path.empty()) return {};
  const std::string readers = PrivateFileWarning("--api-keys-file " + path, path);
  if (readers.empty()) return {};
  return {Bad(readers, "chmod 600 " + path)};
}

}  // namespace penstock::cli
