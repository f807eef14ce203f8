#include "router/http/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <sys/socket.h>

#include <boost/asio/error.hpp>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>

namespace penstock::router {
namespace {

// OpenSSL's own socket BIO writes without MSG_NOSIGNAL: a client that left would end the process.
int SocketOf(BIO* bio) {
  return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int BioWrite(BIO* bio, const char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto sent =
      ::send(SocketOf(bio), data, static_cast<std::size_t>(size), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && WouldBlock()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int BioRead(BIO* bio, char* data, int size) {
  BIO_clear_retry_flags(bio);
  const auto got = ::recv(SocketOf(bio), data, static_cast<std::size_t>(size), MSG_DONTWAIT);
  if (got < 0 && WouldBlock()) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long BioControl(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

// Made once, for the life of the process.
const BIO_METHOD* SocketMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(made, BioWrite);
    BIO_meth_set_read(made, BioRead);
    BIO_meth_set_ctrl(made, BioControl);
    return made;
  }();
  return method;
}

}  // namespace

TlsSession::TlsSession(const TlsContext& context, int socket)
    : ssl_(SSL_new(context.native()), SSL_free) {
  BIO* bio = ssl_ ? BIO_new(SocketMethod()) : nullptr;
  if (bio == nullptr) throw std::bad_alloc();
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
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
  const char* reason = ERR_reason_error_string(ERR_peek_error());
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
