// Converts absl::Status to grpc::Status: the same code and the same one-line message.
#pragma once

#include <absl/status/status.h>
#include <grpcpp/support/status.h>

#include "common/status.h"

namespace penstock::shard {

inline grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), Message(status)};
}

}  // namespace penstock::shard
