// The files that say who may connect: API keys, and the certificate of the listener with its key.
// They are read at the start and again after SIGHUP. An invalid file changes nothing then.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "common/options/values.h"
#include "common/tls_identity.h"
#include "router/api/keys.h"
#include "router/http/tls_context.h"
#include "router/metrics/metrics.h"

namespace penstock::router {

// Call Load and ReadAgain from one thread at a time. The objects that it returns are thread-safe.
class AccessFiles {
 public:
  AccessFiles(const options::Values& values, Metrics& metrics)
      : values_(values), metrics_(metrics) {}

  // Errors name the option, the path and the reason.
  absl::Status Load();

  // Whether there is a file to read again.
  bool any() const { return has_keys_file() || tls_ != nullptr; }
  // Logs what has changed.
  void ReadAgain();

  const std::shared_ptr<KeyRing>& keys() const { return keys_; }
  const std::shared_ptr<TlsKeeper>& tls() const { return tls_; }  // null: plain HTTP

 private:
  bool has_keys_file() const;
  // Whether something has changed.
  absl::StatusOr<bool> ReadKeys();
  absl::StatusOr<bool> ReadTls();

  const options::Values& values_;
  Metrics& metrics_;
  std::shared_ptr<KeyRing> keys_ = std::make_shared<KeyRing>();
  std::shared_ptr<TlsKeeper> tls_;
  std::shared_ptr<const TlsIdentity> identity_;  // that of tls_
};

}  // namespace penstock::router
