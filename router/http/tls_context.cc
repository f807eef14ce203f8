#include "router/http/tls_context.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <string>
#include <string_view>

namespace penstock::router {
namespace {

constexpr const char* kCiphers =
    "ECDHE+AESGCM:ECDHE+CHACHA20";                       // of TLS 1.2; 1.3 has good ones only
constexpr std::string_view kServerName = "penstock";     // sessions of this kind of server
constexpr std::string_view kProtocols = "\x08http/1.1";  // as ALPN writes it
// The largest chain of certificates that a client may send.
constexpr long kMaxClientChain = 32L << 10;

template <class T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

absl::Status Refused(std::string_view what) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InvalidArgumentError(std::string(what) + ": " +
                                    (reason == nullptr ? "OpenSSL refuses it" : reason));
}

Owned<BIO> Text(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
          [](BIO* bio) { BIO_free(bio); }};
}

Owned<X509> NextCertificate(BIO* text) {
  return {PEM_read_bio_X509(text, nullptr, nullptr, nullptr), X509_free};
}

// The certificate and those that sign it, as the file has them.
bool UseChain(SSL_CTX* context, const std::string& pem) {
  const auto text = Text(pem);
  const auto own = NextCertificate(text.get());
  if (own == nullptr || SSL_CTX_use_certificate(context, own.get()) != 1) return false;
  while (const auto next = NextCertificate(text.get())) {
    if (SSL_CTX_add1_chain_cert(context, next.get()) != 1) return false;
  }
  ERR_clear_error();  // the end of the text
  return true;
}

bool UseKey(SSL_CTX* context, const std::string& pem) {
  const auto text = Text(pem);
  const Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(text.get(), nullptr, nullptr, nullptr),
                            EVP_PKEY_free);
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

bool AskClients(SSL_CTX* context, const std::string& pem) {
  const auto text = Text(pem);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  int count = 0;
  while (const auto authority = NextCertificate(text.get())) {
    if (X509_STORE_add_cert(store, authority.get()) != 1 ||
        SSL_CTX_add_client_CA(context, authority.get()) != 1) {
      return false;
    }
    ++count;
  }
  ERR_clear_error();
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_max_cert_list(context, kMaxClientChain);
  return count > 0;
}

// A client that names protocols, and HTTP/1 is none of them, could not be understood.
int ChooseProtocol(SSL*, const unsigned char** chosen, unsigned char* size,
                   const unsigned char* offered, unsigned offered_size, void*) {
  unsigned char* found = nullptr;
  const auto* own = reinterpret_cast<const unsigned char*>(kProtocols.data());
  const int outcome =
      SSL_select_next_proto(&found, size, own, kProtocols.size(), offered, offered_size);
  *chosen = found;
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

bool SetRules(SSL_CTX* context) {
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  // An idle connection holds no buffers; a write may be tried again from another place.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(context, ChooseProtocol, nullptr);
  const auto* name = reinterpret_cast<const unsigned char*>(kServerName.data());
  return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
         SSL_CTX_set_cipher_list(context, kCiphers) == 1 &&
         SSL_CTX_set_num_tickets(context, 1) == 1 &&
         SSL_CTX_set_session_id_context(context, name, kServerName.size()) == 1;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsContext>> TlsContext::Make(const TlsIdentity& identity) {
  Native context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (context == nullptr || !SetRules(context.get())) return Refused("TLS cannot be set up");
  if (!UseChain(context.get(), identity.certificate)) return Refused("the certificate");
  if (!UseKey(context.get(), identity.key)) return Refused("the key");
  if (!identity.authority.empty() && !AskClients(context.get(), identity.authority)) {
    return Refused("the authority of clients");
  }
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(context)));
}

bool TlsContext::asks_clients() const {
  return (SSL_CTX_get_verify_mode(context_.get()) & SSL_VERIFY_FAIL_IF_NO_PEER_CERT) != 0;
}

}  // namespace penstock::router
