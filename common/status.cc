#include "common/status.h"

namespace penstock {

absl::Status BadValue(std::string_view field, std::string_view value, std::string_view limit) {
  std::string text = "`";
  text.append(field).append("` must be ").append(limit).append(". Given: ").append(value);
  return absl::InvalidArgumentError(text);
}

std::string Message(const absl::Status& status) {
  const auto message = status.message();
  return std::string(message.data(), message.size());
}

absl::Status WithContext(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), std::string(context) + ": " + Message(status));
}

}  // namespace penstock
