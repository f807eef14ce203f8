// In which order waiting requests go. The queue (request_queue.h) keeps the requests; a policy only
// ranks them, and every policy is fair up to one number: MaxOvertakes. The queue counts how often a
// request was overtaken and lets it go first when the number is reached, so no policy can starve
// anybody and none has to care.
//
//   fcfs                nobody is overtaken
//   longest-prefix      who finds most of its prompt in the prefix cache
//   priority            greatest Arrival::priority
//   shortest-predicted  smallest forecast of the output (Efficient LLM Scheduling by Learning to
//                       Rank, NeurIPS 2024; its starvation guard is the queue's overtaking bound)
// Ties go to who arrived first. A request that was preempted does not come here: it goes before
// everybody that never ran.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/ids.h"
#include "common/plan/group.h"
#include "scheduler/config.h"

namespace penstock::scheduler {

struct WaitingRequest;

// A WaitingRequest is owned by the queue and stays where it is from Add to Remove.
class OrderPolicy {
 public:
  virtual ~OrderPolicy() = default;

  virtual void Add(WaitingRequest& request) = 0;
  virtual void Remove(WaitingRequest& request) = 0;

  // Who goes next on this group; null when nobody waits.
  virtual WaitingRequest* Next(GroupId group) = 0;

  // Who goes directly before and after it; null at the ends. A policy whose order changes without
  // Add and Remove answers Next (or null, for Next itself) and null.
  virtual WaitingRequest* Before(const WaitingRequest& request) = 0;
  virtual WaitingRequest* After(const WaitingRequest& request) = 0;
};

// fcfs, priority and shortest-predicted. Order::kLongestPrefix is not made here: it ranks by the
// prefix index of a group.
std::unique_ptr<OrderPolicy> MakeKeyOrder(Order order);

std::string_view OrderName(Order order);

// How often a waiting request can be overtaken by one that arrived later: the policy's starvation
// bound (guarantee G6).
std::uint32_t MaxOvertakes(const Config& config);

// Steps of a group that a waiting request can see pass, at most, before it is admitted. Holds under
// guaranteed admission with one group and one row per decode, batching continuous.
//
// Proof. At most slots + queue + MaxOvertakes requests go before it: those that run, those that
// wait, those that overtake it. While it waits the group is never empty, and of those that run the
// one admitted first gains a token (of its prompt or output) in every step, but for the steps in
// flight when it ends: it is gone after max_sequence_length + pipeline_depth steps.
std::uint64_t MaxWaitSteps(const Config& config, const GroupCapacity& capacity);

// One line for the log: the order and its bounds.
std::string DescribeOrder(const Config& config, const GroupCapacity& capacity);

}  // namespace penstock::scheduler
