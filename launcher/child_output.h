// A child that is run for what it says.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "launcher/child_process.h"

namespace penstock::launcher {

struct ChildOutput {
  std::string text;                // standard output and error
  std::optional<ExitStatus> exit;  // nothing: it did not end within 10 s and was killed
};

absl::StatusOr<ChildOutput> RunForOutput(const ChildSpec& spec);

}  // namespace penstock::launcher
