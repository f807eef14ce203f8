#include "text/rust_call.h"

namespace penstock::text {
namespace {

absl::StatusCode CodeOf(int32_t code) {
  switch (code) {
    case PENSTOCK_TEXT_INVALID_ARGUMENT:
      return absl::StatusCode::kInvalidArgument;
    case PENSTOCK_TEXT_NOT_FOUND:
      return absl::StatusCode::kNotFound;
    case PENSTOCK_TEXT_LIMIT:
      return absl::StatusCode::kResourceExhausted;
    case PENSTOCK_TEXT_TEMPLATE:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status ToStatus(int32_t code, const RustBytes& error) {
  if (code == PENSTOCK_TEXT_OK) return absl::OkStatus();
  return absl::Status(CodeOf(code), error.str());
}

}  // namespace penstock::text
