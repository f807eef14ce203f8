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
#include <string_view>

#include "common/ids.h"
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

}  // namespace penstock::scheduler
