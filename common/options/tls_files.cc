#include "common/options/tls_files.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/bad_option.h"
#include "common/log.h"
#include "common/private_file.h"
#include "common/status.h"

namespace penstock::options {
namespace {

constexpr int kSoonDays = 14;

// The options of one identity.
struct Names {
  const char* certificate;
  const char* key;
  const char* authority;
  const char* together;  // which of them belong together
};
constexpr Names kShardNames = {
    "shard-tls-cert", "shard-tls-key", "shard-tls-ca",
    "--shard-tls-cert, --shard-tls-key and --shard-tls-ca belong together"};
constexpr Names kHttpNames = {
    "tls-cert", "tls-key", "tls-client-ca",
    "--tls-cert and --tls-key belong together, and --tls-client-ca needs both"};

absl::StatusOr<std::string> ReadPem(const Values& values, const char* option, const Names& names) {
  const std::string& path = values.GetString(option);
  if (path.empty()) return BadOption(option, "", std::string("given: ") + names.together);
  // The launcher checks it, the router reads it, SIGHUP reads it again: a pipe gives its text once.
  std::error_code failure;
  if (const auto status = std::filesystem::status(path, failure);
      std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return BadOption(option, path, "a PEM file that can be read again, not a pipe or a folder");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file) {
    const std::string reason = errno == 0 ? "it is empty" : std::strerror(errno);
    return BadOption(option, path, "a PEM file that can be read (" + reason + ")");
  }
  if (text.str().find("-----BEGIN ") == std::string::npos) {
    return BadOption(option, path, "a PEM file, with a line that starts with -----BEGIN");
  }
  return std::move(text).str();
}

constexpr std::string_view kWhole = "one or more complete PEM certificates";

// Gives the decoded object of a PEM text, null where there is none. `Read` is PEM_read_bio_...
template <typename T, typename Read>
std::unique_ptr<T, void (*)(T*)> Decode(const std::string& pem, Read read, void (*free)(T*)) {
  const std::unique_ptr<BIO, int (*)(BIO*)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  // No password: a program that starts cannot ask for one.
  const auto refuse = [](char*, int, int, void*) { return -1; };
  std::unique_ptr<T, void (*)(T*)> object(read(text.get(), nullptr, refuse, nullptr), free);
  ERR_clear_error();
  return object;
}

auto DecodeCertificate(const std::string& pem) {
  return Decode<X509>(pem, PEM_read_bio_X509, X509_free);
}

// Whether the text has certificates and all of them are complete. OpenSSL would silently stop at an
// incomplete one.
bool HoldsCertificates(const std::string& pem) {
  const std::unique_ptr<BIO, int (*)(BIO*)> text(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  int count = 0;
  while (X509* certificate = PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)) {
    X509_free(certificate);
    ++count;
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return count > 0 && at_end;
}

// The key of another certificate would make each handshake fail without a clear reason.
absl::Status CheckPair(const Values& values, const Names& names, const TlsIdentity& identity) {
  const auto certificate = DecodeCertificate(identity.certificate);
  const auto key = Decode<EVP_PKEY>(identity.key, PEM_read_bio_PrivateKey, EVP_PKEY_free);
  if (!HoldsCertificates(identity.certificate)) {
    return BadOption(names.certificate, values.GetString(names.certificate), kWhole);
  }
  if (key == nullptr) {
    return BadOption(names.key, values.GetString(names.key),
                     "a PEM private key without a password");
  }
  const bool pair = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!pair) {
    return BadOption(names.key, values.GetString(names.key),
                     "the key of the certificate " + values.GetString(names.certificate));
  }
  return absl::OkStatus();
}

TlsFiles Read(const Values& values, const Names& names, bool needs_authority) {
  const bool asks_others = values.IsSet(names.authority);
  if (!values.IsSet(names.certificate) && !values.IsSet(names.key) && !asks_others) {
    return std::shared_ptr<const TlsIdentity>();
  }
  auto identity = std::make_shared<TlsIdentity>();
  PENSTOCK_ASSIGN_OR_RETURN(identity->certificate, ReadPem(values, names.certificate, names));
  PENSTOCK_ASSIGN_OR_RETURN(identity->key, ReadPem(values, names.key, names));
  if (needs_authority || asks_others) {
    PENSTOCK_ASSIGN_OR_RETURN(identity->authority, ReadPem(values, names.authority, names));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckPair(values, names, *identity));
  const std::string& key = values.GetString(names.key);
  const std::string readers = PrivateFileWarning("--" + std::string(names.key) + " " + key, key);
  if (!readers.empty()) log::Warn(readers);
  if (!identity->authority.empty() && !HoldsCertificates(identity->authority)) {
    return BadOption(names.authority, values.GetString(names.authority), kWhole);
  }
  return std::shared_ptr<const TlsIdentity>(std::move(identity));
}

}  // namespace

TlsFiles ReadShardTls(const Values& values) { return Read(values, kShardNames, true); }

TlsFiles ReadHttpTls(const Values& values) { return Read(values, kHttpNames, false); }

std::string CertificateWarning(const std::string& pem) {
  const auto certificate = DecodeCertificate(pem);
  if (certificate == nullptr) return "";
  const ASN1_TIME* end = X509_get0_notAfter(certificate.get());
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) > 0) {
    return "the certificate is not valid yet";
  }
  if (X509_cmp_current_time(end) < 0) return "the certificate has expired";
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, nullptr, end) != 1 || days >= kSoonDays) return "";
  return "the certificate expires in " + std::to_string(days) + " days";
}

std::optional<std::int64_t> CertificateEnd(const std::string& pem) {
  const auto certificate = DecodeCertificate(pem);
  std::tm date = {};
  if (certificate == nullptr) return std::nullopt;
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &date) != 1) return std::nullopt;
  return ::timegm(&date);
}

}  // namespace penstock::options
