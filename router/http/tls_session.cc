#include "router/http/tls_session.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <boost/asio/error.hpp>
#include <new>

namespace penstock::router {

TlsSession::TlsSession(const TlsContext& context, int socket)
    : ssl_(SSL_new(context.native()), SSL_free) {
  if (!ssl_ || SSL_set_fd(ssl_.get(), socket) != 1) throw std::bad_alloc();
  SSL_set_accept_state(ssl_.get());
}

TlsSession::Step TlsSession::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) return Step::kDone;
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return Step::kWantRead;
  if (error == SSL_ERROR_WANT_WRITE) return Step::kWantWrite;
  broken_ = true;
  const long verified = SSL_get_verify_result(ssl_.get());
  const unsigned long code = ERR_peek_error();
  const bool closed = code == 0 || ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
  const char* reason = closed ? nullptr : ERR_reason_error_string(code);
  failure_ = reason == nullptr ? "the client closed the connection" : reason;
  if (verified != X509_V_OK) {
    failure_.append(" (").append(X509_verify_cert_error_string(verified)).append(")");
  }
  ERR_clear_error();
  return Step::kFailed;
}

TlsSession::error_code TlsSession::Reason(int result) {
  const int error = SSL_get_error(ssl_.get(), result);
  ERR_clear_error();
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    return boost::asio::error::would_block;
  }
  if (error == SSL_ERROR_ZERO_RETURN) return boost::asio::error::eof;
  broken_ = true;
  return boost::asio::error::connection_reset;
}

std::size_t TlsSession::WriteSome(std::string_view data, error_code& ec) {
  ERR_clear_error();
  std::size_t taken = 0;
  const int result = SSL_write_ex(ssl_.get(), data.data(), data.size(), &taken);
  ec = result == 1 ? error_code() : Reason(result);
  return taken;
}

std::size_t TlsSession::ReadSome(std::span<char> room, error_code& ec) {
  std::size_t total = 0;
  ec = {};
  while (room.size() - total >= kMaxRecord) {
    ERR_clear_error();
    std::size_t count = 0;
    const int result = SSL_read_ex(ssl_.get(), room.data() + total, room.size() - total, &count);
    if (result != 1) {
      ec = Reason(result);
      break;
    }
    total += count;
  }
  if (total > 0) ec = {};  // an end is told again by the next call
  return total;
}

void TlsSession::EndSending(error_code& ec) {
  ec = {};
  if (broken_) return;
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_.get());
  if (result < 0) ec = Reason(result);
}

}  // namespace penstock::router
