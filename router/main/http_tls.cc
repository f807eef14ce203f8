#include "router/main/http_tls.h"

#include <string>

#include "common/log.h"
#include "common/options/tls_files.h"
#include "common/status.h"

namespace penstock::router {

absl::StatusOr<std::shared_ptr<const TlsContext>> MakeHttpTls(const options::Values& values) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto identity, options::ReadHttpTls(values));
  if (identity == nullptr) return std::shared_ptr<const TlsContext>();
  const std::string where = "--tls-cert " + values.GetString("tls-cert");
  auto context = TlsContext::Make(*identity);
  if (!context.ok()) return WithContext(context.status(), where);
  const std::string warning = options::CertificateWarning(identity->certificate);
  if (!warning.empty()) log::Warn(where + ": " + warning);
  return context;
}

}  // namespace penstock::router
