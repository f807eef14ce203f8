// The checker's model of one request, built from inputs and outputs alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/config.h"
#include "scheduler/input.h"
#include "scheduler/output.h"

namespace penstock::sim {

struct RequestModel {
  enum class State : std::uint8_t {
    kWaiting,    // in the queue
    kAdmitted,   // admitted to a group; runs, or starts in a later plan
    kPreempted,  // preempted; its last results have not arrived
    kDone,
  };

  scheduler::Arrival arrival;
  std::uint64_t order = 0;  // of arrival
  State state = State::kWaiting;
  std::vector<TokenId> tokens;  // reported to the client
  std::optional<std::uint32_t> finish_at;
  std::uint32_t starts = 0;            // Started events
  std::uint32_t preemptions = 0;       // for memory
  bool recomputed = false;             // preempted as it passed the original length
  bool lost = false;                   // its group was lost
  bool yielded = false;                // left last for a request that was due
  bool due = false;                    // was admitted as due
  std::uint32_t losses = 0;            // for which a request may be to blame
  std::uint64_t arithmetic_class = 0;  // of its last group
  std::optional<Time> fails_at;        // no group that is up can continue it
  std::uint64_t place = 0;             // in the order in which requests came to the queue
  std::uint64_t since = 0;             // steps that were made before it came
  std::uint32_t at_start = 0;          // tokens that it had when it was admitted
  std::uint32_t overtaken = 0;
  std::uint32_t passed = 0;            // overtaken, by requests of all groups
  std::uint64_t steps_waited = 0;      // results that arrived while it waited
  std::uint64_t most_steps = 0;        // the most steps that it may wait; 0 = no bound is known
  bool refused = false;                // by a decision
  std::vector<float> prompt_logprobs;  // received so far for this sequence
  std::vector<PromptAlternatives> prompt_alternatives;
  bool prompt_logprobs_told = false;
  std::optional<GroupId> group;
  std::optional<SequenceId> sequence;
  std::optional<GroupId> leaves;  // kPreempted: the group whose last results are in flight

  bool ran() const { return yielded || preemptions > 0 || recomputed || lost; }
  bool restart() const { return ran() && !yielded; }  // comes before all others
  bool suspect() const { return losses >= 2; }
  bool waiting() const { return state == State::kWaiting; }
  bool done() const { return state == State::kDone; }
  std::uint32_t received() const { return static_cast<std::uint32_t>(tokens.size()); }
  std::uint32_t prompt() const { return static_cast<std::uint32_t>(arrival.prompt.size()); }
  // No token after this one may be reported or planned.
  std::uint32_t Last() const {
    return std::min(arrival.max_new_tokens, finish_at.value_or(UINT32_MAX));
  }
  std::uint64_t WorstCase() const { return std::uint64_t{prompt()} + arrival.max_new_tokens; }
};

// Whether its worst case is reserved at admission, so that it is never preempted.
inline bool IsPromised(scheduler::AdmissionMode admission, const RequestModel& request) {
  return admission == scheduler::AdmissionMode::kGuaranteed ||
         (admission == scheduler::AdmissionMode::kMixed && request.arrival.length_given);
}

inline std::string Name(RequestId request) { return "request " + std::to_string(request.value()); }

}  // namespace penstock::sim
