#include "common/bad_option.h"

#include <string>

namespace penstock {

absl::Status BadOption(std::string_view option, std::string_view value, std::string_view limit) {
  std::string text = "--";
  text.append(option).append(value.empty() ? "" : " ").append(value);
  return absl::InvalidArgumentError(text.append(": must be ").append(limit));
}

}  // namespace penstock
