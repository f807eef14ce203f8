// --step-log: what each engine step was made of, one JSON line per step, flushed with each line so
// that a reader sees a step when it was sent.
#pragma once

#include <absl/status/status.h>

#include <fstream>
#include <string>

#include "scheduler/output.h"

namespace penstock::router {

class StepLog {
 public:
  // Empty path: nothing is written.
  absl::Status Open(const std::string& path);
  void Write(const scheduler::StepInfo& info);

 private:
  std::ofstream file_;
};

}  // namespace penstock::router
