#include "common/adapter_name.h"

#include <absl/strings/ascii.h>

#include <algorithm>

#include "common/status.h"

namespace penstock {
namespace {

constexpr std::size_t kLongestName = 128;
constexpr std::string_view kOthers = "._-/:";

}  // namespace

absl::Status CheckAdapterName(std::string_view name) {
  const bool known = std::ranges::all_of(name, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || kOthers.find(c) != kOthers.npos;
  });
  if (known && !name.empty() && name.size() <= kLongestName) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "the name of an adapter must be 1 to 128 letters, digits and . _ - / :");
}

absl::StatusOr<AdapterFolder> ParseAdapterFolder(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals + 1 == text.size()) {
    return absl::InvalidArgumentError("must be NAME=FOLDER; adapters are not fetched from the hub");
  }
  const std::string_view name = text.substr(0, equals);
  PENSTOCK_RETURN_IF_ERROR(CheckAdapterName(name));
  return AdapterFolder{std::string(name), std::string(text.substr(equals + 1))};
}

}  // namespace penstock
