// The command line of penstock-make-model.
#pragma once

#include <absl/status/statusor.h>

#include "tools/make-model/make_model.h"

namespace penstock::make_model {

struct CommandLine {
  absl::StatusOr<ModelOptions>
      config;         // Cancelled: everything was printed already (--help, bad options)
  int exit_code = 0;  // when there is no config
};

CommandLine ReadCommandLine(int argc, char** argv);

}  // namespace penstock::make_model
