// Runs a program for its output.
#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "launcher/child_process.h"

namespace penstock::launcher {

struct ChildOutput {
  std::string text;                // standard output and error
  std::optional<ExitStatus> exit;  // not set if it was killed after 10 s
};

absl::StatusOr<ChildOutput> RunForOutput(const ChildSpec& spec);

}  // namespace penstock::launcher
