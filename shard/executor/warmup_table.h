// The warm-up table on disk. A later start checks two of its steps instead of measuring all again.
// It is a text file beside the packed weights (--weights-cache):
//
//   penstock-warmup 3
//   <identity: one line that names the model, the limits and the machine>
//   <prefill tokens> <decode rows> <context tokens> <nanoseconds>     a line per step
//   end <checksum of all before it>
//
// A file with any other content counts as absent, and so does one that common/kept_file.h refuses.
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/plan/group.h"

namespace penstock::shard {

class WarmupTable {
 public:
  // `folder` exists, or is empty: then nothing is kept. `identity` is one line. Each identity has
  // its own file; the folder keeps the 16 newest.
  WarmupTable(std::string folder, std::string identity);

  // Empty if there is no valid table. Logs a warning if the file is refused.
  std::vector<StepTimeSample> Read() const;

  // Replaces the old table atomically, unless its path is not a regular file. Logs a warning on
  // failure.
  void Write(const std::vector<StepTimeSample>& samples) const;

 private:
  absl::Status Replace(const std::string& text) const;

  std::string folder_;
  std::string identity_;
  std::string path_;
};

}  // namespace penstock::shard
