// Helpers for absl::Status, the error type of every module border.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>
#include <utility>

namespace penstock {

// "`field` must be LIMIT. Given: VALUE": the one shape of a bad-input message.
absl::Status BadValue(std::string_view field, std::string_view value, std::string_view limit);

// The message as std::string (absl::string_view is not std::string_view on Debian 12).
std::string Message(const absl::Status& status);

// The same code with "context: " in front of the message. OK stays OK.
absl::Status WithContext(const absl::Status& status, std::string_view context);

}  // namespace penstock

#define PENSTOCK_STATUS_CONCAT_INNER(a, b) a##b
#define PENSTOCK_STATUS_CONCAT(a, b) PENSTOCK_STATUS_CONCAT_INNER(a, b)

// Returns early from a function that gives Status or StatusOr.
#define PENSTOCK_RETURN_IF_ERROR(expression)                                  \
  do {                                                                        \
    if (absl::Status penstock_status = (expression); !penstock_status.ok()) { \
      return penstock_status;                                                 \
    }                                                                         \
  } while (false)

// PENSTOCK_ASSIGN_OR_RETURN(auto x, MakeX());
#define PENSTOCK_ASSIGN_OR_RETURN(target, expression)                                     \
  PENSTOCK_ASSIGN_OR_RETURN_INNER(PENSTOCK_STATUS_CONCAT(penstock_or_, __LINE__), target, \
                                  expression)
#define PENSTOCK_ASSIGN_OR_RETURN_INNER(holder, target, expression) \
  auto holder = (expression);                                       \
  if (!holder.ok()) return holder.status();                         \
  target = std::move(holder).value()
