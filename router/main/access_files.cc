#include "router/main/access_files.h"

#include <cstddef>
#include <utility>

#include "common/log.h"
#include "common/options/tls_files.h"
#include "common/status.h"

namespace penstock::router {
namespace {

std::string CountOfKeys(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " API key" : " API keys");
}

}  // namespace

bool AccessFiles::has_keys_file() const { return !values_.GetString("api-keys-file").empty(); }

absl::StatusOr<bool> AccessFiles::ReadKeys() {
  PENSTOCK_ASSIGN_OR_RETURN(ApiKeys keys, ApiKeys::Load(values_.GetString("api-key"),
                                                        values_.GetString("api-keys-file")));
  if (keys == *keys_->Get()) return false;
  keys_->Set(std::move(keys));
  return true;
}

absl::StatusOr<bool> AccessFiles::ReadTls() {
  PENSTOCK_ASSIGN_OR_RETURN(const auto identity, options::ReadHttpTls(values_));
  if (identity == nullptr) return false;
  const std::string where = "--tls-cert " + values_.GetString("tls-cert");
  auto context = TlsContext::Make(*identity);
  if (!context.ok()) return WithContext(context.status(), where);
  const std::string warning = options::CertificateWarning(identity->certificate);
  if (!warning.empty()) log::Warn(where + ": " + warning);
  if (identity_ != nullptr && *identity == *identity_) return false;
  identity_ = identity;
  if (const auto end = options::CertificateEnd(identity->certificate); end.has_value()) {
    metrics_.access().CertificateEnds(*end);
  }
  if (tls_ != nullptr) {
    tls_->Set(*std::move(context));
  } else {
    tls_ = std::make_shared<TlsKeeper>(*std::move(context));
  }
  return true;
}

absl::Status AccessFiles::Load() {
  PENSTOCK_RETURN_IF_ERROR(ReadKeys().status());
  return ReadTls().status();
}

void AccessFiles::ReadAgain() {
  bool changed = false;
  if (has_keys_file()) {
    const absl::StatusOr<bool> keys = ReadKeys();
    metrics_.access().Reloaded(AccessMetrics::File::kApiKeys, keys.ok());
    if (!keys.ok()) log::Error("the API keys stay as they were: " + Message(keys.status()));
    if (keys.ok() && *keys) {
      log::Info(CountOfKeys(keys_->Get()->size()) + " read from " +
                values_.GetString("api-keys-file"));
    }
    changed = !keys.ok() || *keys;
  }
  if (tls_ != nullptr) {
    const absl::StatusOr<bool> tls = ReadTls();
    metrics_.access().Reloaded(AccessMetrics::File::kCertificate, tls.ok());
    if (!tls.ok()) log::Error("the certificate stays as it was: " + Message(tls.status()));
    if (tls.ok() && *tls) {
      log::Info("new connections get the certificate of " + values_.GetString("tls-cert"));
    }
    changed = changed || !tls.ok() || *tls;
  }
  if (!changed) log::Info("SIGHUP: the files of keys and certificates have not changed");
}

}  // namespace penstock::router
