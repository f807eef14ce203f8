// Everything that the scheduler learns. A sequence of Inputs can be replayed: the same Config and
// Inputs give the same Outputs, bit for bit (guarantee G9).
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

// A validated request: prompt.size() + max_new_tokens is at most the router's max_total_tokens. The
// scheduler refuses a request that can never fit a group.
struct Arrival {
  RequestId request;
  std::vector<TokenId> prompt;       // not empty
  std::uint32_t max_new_tokens = 0;  // >= 1
  bool length_given = true;          // false: max_new_tokens is all that fits
  RequestClass request_class = RequestClass::kOther;
  std::uint32_t predicted_tokens = 0;  // the client's forecast of the output; 0 = none
  std::uint32_t ranked_tokens = 0;     // the router's, for Order::kLearned alone; 0 = none
  std::uint32_t min_new_tokens = 0;
  SamplingParams sampling;
  LogprobRequest logprobs;
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  std::int32_t priority = 0;  // larger is sooner, with Order::kPriority
  GrammarSpec grammar;
  std::string tenant;  // separates prefix caches, as does what a NUL parts from it; may be empty
  std::string adapter_id;  // of the shards; also separates prefix caches; empty = no adapter
  std::string trace_id;
  std::uint32_t pinned_tokens = 0;  // leading prompt tokens that stay cached (`cached_prompt`)
  std::string account;       // who is charged for its work (account.h); one for all: no fair shares
  std::uint32_t weight = 1;  // of the account, from now on; >= 1
};

struct Cancel {
  RequestId request;
};

// The output ends with its token_count-th token: the router found a stop string there.
struct FinishAt {
  RequestId request;
  std::uint32_t token_count = 0;
};

// The result of a step, from rank 0. The router has compared the digests of the other ranks.
struct StepDone {
  GroupId group;
  StepResult result;
};

struct GroupUp {
  GroupId group;
  Epoch epoch;
  GroupCapacity capacity;
  Calibration calibration;
  // Groups of equal classes compute the same bits. A request with output continues on its class.
  std::uint64_t arithmetic_class = 0;
};

// The group is lost. Its running requests are queued again. Without Config::recovery_timeout they
// fail with `reason`.
struct GroupLost {
  GroupId group;
  Epoch epoch;
  std::string reason;
  bool in_order = false;  // it was stopped on purpose, so no request is to blame
};

// Unpins prefixes of this tenant: the one that this request made, or all.
struct ForgetPrefixes {
  std::string tenant;
  std::optional<RequestId> made_by;
};

// New requests are refused. Waiting and running requests end normally.
struct Drain {};

// Only the time has passed: see Scheduler::NextDeadline.
struct Tick {};

struct Input {
  Time now;
  std::variant<Arrival, Cancel, FinishAt, StepDone, GroupUp, GroupLost, Drain, ForgetPrefixes, Tick>
      what;
};

}  // namespace penstock::scheduler
