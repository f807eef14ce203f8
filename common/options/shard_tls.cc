#include "common/options/shard_tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "common/status.h"

namespace penstock::options {
namespace {

absl::StatusOr<std::string> ReadPem(const Values& values, const char* option) {
  const std::string& path = values.GetString(option);
  if (path.empty()) {
    return BadValue(option, "", "given: --shard-tls-cert, -key and -ca belong together");
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || text.str().find("-----BEGIN ") == std::string::npos) {
    return BadValue(option, path, "a PEM file that can be read");
  }
  return std::move(text).str();
}

// Gives the decoded object of a PEM text, null where there is none. `Read` is PEM_read_bio_...
template <typename T, typename Read>
std::unique_ptr<T, void (*)(T*)> Decode(const std::string& pem, Read read, void (*free)(T*)) {
  const std::unique_ptr<BIO, int (*)(BIO*)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  // No password: a program that starts cannot ask for one.
  const auto refuse = [](char*, int, int, void*) { return -1; };
  return {read(text.get(), nullptr, refuse, nullptr), free};
}

// A key of another certificate would fail each handshake, and nobody would be told why.
absl::Status CheckPair(const Values& values, const TlsIdentity& identity) {
  const auto certificate = Decode<X509>(identity.certificate, PEM_read_bio_X509, X509_free);
  const auto key = Decode<EVP_PKEY>(identity.key, PEM_read_bio_PrivateKey, EVP_PKEY_free);
  const bool pair = certificate != nullptr && key != nullptr &&
                    X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (certificate == nullptr) {
    return BadValue("shard-tls-cert", values.GetString("shard-tls-cert"), "a PEM certificate");
  }
  if (key == nullptr) {
    return BadValue("shard-tls-key", values.GetString("shard-tls-key"),
                    "a PEM private key without a password");
  }
  if (!pair) {
    return BadValue("shard-tls-key", values.GetString("shard-tls-key"),
                    "the key of the certificate " + values.GetString("shard-tls-cert"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TlsIdentity>> ReadShardTls(const Values& values) {
  const bool any = values.IsSet("shard-tls-cert") || values.IsSet("shard-tls-key") ||
                   values.IsSet("shard-tls-ca");
  if (!any) return std::shared_ptr<const TlsIdentity>();
  auto identity = std::make_shared<TlsIdentity>();
  PENSTOCK_ASSIGN_OR_RETURN(identity->certificate, ReadPem(values, "shard-tls-cert"));
  PENSTOCK_ASSIGN_OR_RETURN(identity->key, ReadPem(values, "shard-tls-key"));
  PENSTOCK_ASSIGN_OR_RETURN(identity->authority, ReadPem(values, "shard-tls-ca"));
  PENSTOCK_RETURN_IF_ERROR(CheckPair(values, *identity));
  return std::shared_ptr<const TlsIdentity>(std::move(identity));
}

}  // namespace penstock::options
