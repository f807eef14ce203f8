// The warm-up's table on disk, so that a later start checks it at two points instead of measuring
// all of it again. A text file beside the packed weights (--weights-cache):
//
//   penstock-warmup 3
//   <identity: one line: what was measured, on what>
//   <prefill tokens> <decode rows> <context tokens> <nanoseconds>     a line per step
//   end <checksum of all before it>
//
// Anything else than that in it makes it count as absent, and so does a file of others
// (common/kept_file.h).
#pragma once

#include <absl/status/status.h>

#include <string>
#include <string_view>
#include <vector>

#include "common/plan/group.h"

namespace penstock::shard {

class WarmupTable {
 public:
  // An empty folder: nothing is kept; any other is there. `identity` is one line; tables of other
  // identities have other files, of which the folder keeps the sixteen that were written last.
  WarmupTable(std::string folder, std::string identity);

  // Empty: none, or none that may be taken, which is a warning.
  std::vector<StepTimeSample> Read() const;

  // Takes the old one's place at once, but not that of what is no regular file; what goes wrong is
  // a warning.
  void Write(const std::vector<StepTimeSample>& samples) const;

 private:
  absl::Status Replace(const std::string& text) const;

  std::string folder_;
  std::string identity_;
  std::string path_;
};

}  // namespace penstock::shard
