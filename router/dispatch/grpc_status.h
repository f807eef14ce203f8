// Converts grpc::Status to absl::Status. Both types number the codes alike.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

namespace penstock::router {

inline absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace penstock::router
