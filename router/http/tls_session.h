// TLS over one non-blocking socket, by readiness: each call does what it can now and says
// would_block for the rest. It does not own the socket, whose number must stay the same and which
// must not block. The process must ignore SIGPIPE: OpenSSL writes to clients that have left.
//
// Used by one thread at a time; it may change between calls.
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "router/http/tls_context.h"

struct ssl_st;

namespace penstock::router {

class TlsSession {
 public:
  using error_code = boost::system::error_code;
  // A read takes at least one whole record. Otherwise readable bytes could stay inside the session,
  // where the kernel does not report them.
  static constexpr std::size_t kMaxRecord = std::size_t{16} << 10;

  TlsSession(const TlsContext& context, int socket);

  enum class Step { kDone, kWantRead, kWantWrite, kFailed };
  Step Handshake();
  // Why the handshake failed, with OpenSSL's text.
  const std::string& failure() const { return failure_; }

  // Each write that fits becomes one record. After would_block the same bytes must be tried again.
  std::size_t WriteSome(std::string_view data, error_code& ec);
  // `room` is at least kMaxRecord. eof: the client sends no more.
  std::size_t ReadSome(std::span<char> room, error_code& ec);
  // close_notify. Nothing may be written after it.
  void EndSending(error_code& ec);

 private:
  error_code Reason(int result);

  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  bool broken_ = false;  // by an error that TLS does not survive
  std::string failure_;
};

}  // namespace penstock::router
