// Ends the sequences of one replica group and gives back what they hold.
//
//   Finish, Fail  the request is over: its terminal event is emitted, the sequence retires
//   Reclaim       frees the blocks and the slot of a retiring sequence as soon as no plan in flight
//                 refers to it. A preempted one is then queued again.
//
// Not synchronised; one owner, the GroupScheduler.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/ids.h"
#include "common/time.h"
#include "scheduler/admission/output_lengths.h"
#include "scheduler/output.h"
#include "scheduler/step/sequence_table.h"

namespace penstock::scheduler {

class Retirement {
 public:
  // `table` and `lengths` must outlive the object. `lengths` learns from the requests that end.
  Retirement(GroupId group, SequenceTable& table, OutputLengths& lengths)
      : group_(group), table_(table), lengths_(lengths) {}

  // The request ends with `tokens` generated tokens.
  void Finish(Sequence& sequence, FinishReason reason, std::uint32_t tokens, Time now,
              Outputs& out);
  // `message`: one line for the client.
  void Fail(Sequence& sequence, FailureKind kind, std::string message, Time now, Outputs& out);

  // Does nothing while a plan in flight refers to the sequence, which must be retiring.
  void ReclaimIfUnreferenced(Sequence& sequence, Time now, Outputs& out);

  // The group is lost: all requests go back to the queue, but for a suspect, which fails.
  // `in_order`: no request is to blame.
  void RequeueAll(const std::string& reason, bool in_order, Time now, Outputs& out);
  // The same without recovery: running requests fail with `reason`, preempted ones go back.
  void FailAll(const std::string& reason, Time now, Outputs& out);

  // Preempted requests that were reclaimed since the last call.
  std::vector<Work> TakePreempted() { return std::exchange(preempted_, {}); }

 private:
  void Retire(Sequence& sequence, Time now, Outputs& out);

  const GroupId group_;
  SequenceTable& table_;
  OutputLengths& lengths_;
  std::vector<Work> preempted_;
};

}  // namespace penstock::scheduler
