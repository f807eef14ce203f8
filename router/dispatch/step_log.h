// --step-log: what each engine step was made of and how long it took, one JSON line per step,
// flushed with each line so that a reader sees a step when its result is in. A step that was lost
// with its group stands there too, without a time.
#pragma once

#include <absl/status/status.h>

#include <fstream>
#include <optional>
#include <string>

#include "common/time.h"
#include "scheduler/output.h"

namespace penstock::router {

class StepLog {
 public:
  // Empty path: nothing is written.
  absl::Status Open(const std::string& path);
  // `taken`: what the shard measured; none = no result came.
  void Write(const scheduler::StepInfo& info, std::optional<Duration> taken);

 private:
  std::ofstream file_;
};

}  // namespace penstock::router
