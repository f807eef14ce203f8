// The TLS settings of the HTTP listener, from the options.
#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "common/options/values.h"
#include "router/http/tls_context.h"

namespace penstock::router {

// Null without --tls-cert. Errors name the option, the path and the reason. Warns of a certificate
// that is not valid now or expires soon.
absl::StatusOr<std::shared_ptr<const TlsContext>> MakeHttpTls(const options::Values& values);

}  // namespace penstock::router
