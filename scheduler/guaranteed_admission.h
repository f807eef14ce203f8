// Admission::kGuaranteed: a request is admitted only when the KV blocks of its worst case (prompt +
// max_new_tokens, rounded up) can be promised. An admitted request is never evicted and never waits
// for memory.
//
// Two questions, both pure:
//   WhyNeverFits  can this request ever run on a group of this size? If not it must be refused at
//                 once: waiting would block the queue for ever.
//   Check         can it be admitted now, and if not, which budget is short and by how much?
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/plan/group.h"
#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::scheduler {

// "Not now": `needed` of the budget, `available` of it.
struct Shortage {
  Budget budget = Budget::kNone;
  std::uint64_t needed = 0;
  std::uint64_t available = 0;
};

// "Never here": why, for people and for the client (field, limit and value in one line).
struct Refusal {
  Shortage shortage;
  std::string message;
};

// What a group has at this moment.
struct GroupState {
  std::uint32_t blocks_available = 0;  // free and not promised
  std::uint32_t slots_available = 0;
  std::uint32_t running = 0;          // admitted, not ended
  std::uint64_t reserved_tokens = 0;  // worst cases of the running
};

class GuaranteedAdmission {
 public:
  GuaranteedAdmission(const Config& config, const GroupCapacity& capacity);

  // Worst-case tokens and blocks of a request.
  static std::uint64_t WorstCaseTokens(const Arrival& arrival);
  std::uint32_t WorstCaseBlocks(const Arrival& arrival) const;

  // Nothing when the request fits an empty group.
  std::optional<Refusal> WhyNeverFits(const Arrival& arrival) const;

  // Room other than this step's token budget, in the order of the Budget names below:
  // batch size, slots, step tokens (a decode row for everybody), total tokens, blocks.
  std::optional<Shortage> Check(const Arrival& arrival, const GroupState& state) const;

 private:
  std::uint32_t MaxRunning() const;

  Config config_;
  GroupCapacity capacity_;
};

}  // namespace penstock::scheduler
