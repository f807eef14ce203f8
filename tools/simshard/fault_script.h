// Scripted faults of simulated shards: the kind of fault, the rank, the group and the step.
//
//   kill at=120 group=1 rank=0        the process ends by SIGKILL, with all that it hosts
//   fail at=50                        the step ends with an error: the group is lost, and may be
//                                     formed again
//   hang at=7 rank=1                  never answers again
//   stall at=9 ms=300                 one answer comes 300 ms later
//   late from=100 to=200 ms=20        every answer is 20 ms late; with probability=0.1 one in ten
//   slow from=10 to=300 factor=4      steps take a multiple of their time
//   desync at=30 rank=1               answers with a digest of its own
//   invalid at=40                     answers with a token outside of the vocabulary
//
// Faults are separated by line breaks or semicolons. `#` begins a comment. Without `group` or
// `rank` a fault is for all. `at` happens once in the life of the process. With `times=3` it
// happens at the first three steps of that number. A range happens each time.
//
// Seed, position in the script, group and step decide which steps a probability selects. Not
// synchronised: each engine has its own copy.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.h"

namespace penstock::simshard {

// The faults of one step.
struct StepFaults {
  bool kill = false;
  bool fail = false;
  bool hang = false;
  bool desync = false;
  bool invalid = false;
  Duration delay{0};
  std::uint32_t factor = 1;
};

class FaultScript {
 public:
  // InvalidArgument names the fault, the key and its values. Empty text: no faults.
  static absl::StatusOr<FaultScript> Parse(std::string_view text, std::uint64_t seed);

  FaultScript() = default;

  // The part that concerns one rank.
  FaultScript For(std::uint32_t group, std::uint32_t rank) const;

  // Called at the beginning of a step. Counts the faults that happen once.
  StepFaults At(std::uint64_t step);

  bool empty() const { return faults_.empty(); }

 private:
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint32_t kAll = std::numeric_limits<std::uint32_t>::max();
  struct Fault {
    std::string kind;
    std::uint64_t from = 0;
    std::uint64_t to = kNever;
    std::uint64_t times = kNever;  // left
    std::uint32_t group = kAll;
    std::uint32_t rank = kAll;
    double probability = 1;
    std::uint64_t ms = 0;
    std::uint32_t factor = 1;
    std::uint64_t salt = 0;
  };

  static absl::StatusOr<Fault> ParseFault(const std::string& text);
  static absl::Status SetKey(Fault& fault, const std::string& key, const std::string& value);
  static bool Strikes(const Fault& fault, std::uint64_t step);

  std::vector<Fault> faults_;
};

}  // namespace penstock::simshard
