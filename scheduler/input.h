// Everything that the core ever learns. The sequence of Inputs is the replay format: same Inputs
// and Config, same Outputs, bit for bit (guarantee G9).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.h"
#include "common/plan/grammar.h"
#include "common/plan/group.h"
#include "common/plan/sampling.h"
#include "common/plan/step_result.h"
#include "common/request/request_class.h"
#include "common/time.h"

namespace penstock::scheduler {

// A validated request. prompt.size() + max_new_tokens must fit the router's max_total_tokens; a
// request that could never fit the group's pool is refused by the core with the numbers.
struct Arrival {
  RequestId request;
  std::vector<TokenId> prompt;       // not empty
  std::uint32_t max_new_tokens = 0;  // >= 1
  bool length_given = true;          // false: the client set no length, it is all that fits
  RequestClass request_class = RequestClass::kOther;
  std::uint32_t predicted_tokens = 0;  // the client's forecast of its output; 0 = none
  std::uint32_t min_new_tokens = 0;
  SamplingParams sampling;
  LogprobRequest logprobs;
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  std::int32_t priority = 0;  // larger is sooner; used by Order::kPriority
  GrammarSpec grammar;
  std::string tenant;  // prefix-cache salt and fairness key; empty = the one tenant
  std::string trace_id;
  std::uint32_t pinned_tokens = 0;  // leading prompt tokens to keep beyond the request
};

struct Cancel {
  RequestId request;
};

// The router found a stop string that ends with the token_count-th generated token.
struct FinishAt {
  RequestId request;
  std::uint32_t token_count = 0;
};

// Result of one step, of rank 0; digests of the other ranks are compared by the dispatcher.
struct StepDone {
  GroupId group;
  StepResult result;
};

struct GroupUp {
  GroupId group;
  Epoch epoch;
  GroupCapacity capacity;
  Calibration calibration;
};

// Running requests of the group end with an error that carries `reason`.
struct GroupLost {
  GroupId group;
  Epoch epoch;
  std::string reason;
};

// Prefixes that were kept for this tenant are not any more: the one that this request made, or all.
struct ForgetPrefixes {
  std::string tenant;
  std::optional<RequestId> made_by;
};

// No further admissions from the outside; what is queued and running ends normally.
struct Drain {};

struct Input {
  Time now;
  std::variant<Arrival, Cancel, FinishAt, StepDone, GroupUp, GroupLost, Drain, ForgetPrefixes> what;
};

}  // namespace penstock::scheduler
