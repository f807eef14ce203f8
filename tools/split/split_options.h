// Command line of penstock-split.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/step/batch_splitter.h"

namespace penstock::split {

struct SplitOptions {
  std::vector<std::uint64_t> lengths;
  scheduler::SplitRule rule;
  double max_sparsity = 0;  // as given
  bool json = false;
  bool sweep = false;
  std::string svg;
};

struct CommandLine {
  absl::StatusOr<SplitOptions> options;  // Cancelled: everything was printed already
  int exit_code = 0;                     // when there are no options
};

CommandLine ReadCommandLine(int argc, const char* const* argv);

}  // namespace penstock::split
