// The file of --step-log: one JSON line for each step, with its contents and its duration. A line
// is flushed when the result has arrived. A step that was lost with its group has no duration.
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
  std::string path_;
  std::ofstream file_;
};

}  // namespace penstock::router
