// The TLS settings of the listener, made from PEM texts. It accepts TLS 1.2 and 1.3, cipher suites
// with forward secrecy and authenticated encryption, and HTTP/1.1 or 1.0 by ALPN. With an authority
// it accepts only clients that have a certificate of it. Sessions are resumed by tickets, so none
// is kept here.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <mutex>
#include <utility>

#include "common/tls_identity.h"

struct ssl_ctx_st;

namespace penstock::router {

// Immutable once made: any thread. Sessions keep what they need of it alive.
class TlsContext {
 public:
  // InvalidArgument says what OpenSSL does not accept, such as a key that is too short.
  static absl::StatusOr<std::shared_ptr<const TlsContext>> Make(const TlsIdentity& identity);

  ssl_ctx_st* native() const { return context_.get(); }
  // Whether only clients with a certificate of an authority are served.
  bool asks_clients() const;

 private:
  using Native = std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)>;
  explicit TlsContext(Native context) : context_(std::move(context)) {}

  Native context_;
};

// The context of handshakes that begin from now on. Thread-safe.
class TlsKeeper {
 public:
  explicit TlsKeeper(std::shared_ptr<const TlsContext> context) : context_(std::move(context)) {}

  std::shared_ptr<const TlsContext> Get() const {
    const std::lock_guard lock(mutex_);
    return context_;
  }
  void Set(std::shared_ptr<const TlsContext> context) {
    const std::lock_guard lock(mutex_);
    context_ = std::move(context);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const TlsContext> context_;
};

}  // namespace penstock::router
