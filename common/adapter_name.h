// Names of LoRA adapters, as clients give them, and their folders.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <string_view>

namespace penstock {

struct AdapterFolder {
  std::string name;
  std::string folder;
  friend bool operator==(const AdapterFolder&, const AdapterFolder&) = default;
};

// InvalidArgument with the limit: 1 to 128 letters, digits and . _ - / :
absl::Status CheckAdapterName(std::string_view name);

// From "NAME=FOLDER".
absl::StatusOr<AdapterFolder> ParseAdapterFolder(std::string_view text);

}  // namespace penstock
