// The order of waiting requests. RequestQueue keeps the requests, and a policy only ranks them. The
// queue counts how often a request was overtaken and puts it first when the count reaches
// MaxOvertakes. So no policy can starve a request, and no policy has to prevent it.
//
//   fcfs                by arrival; no request is overtaken
//   longest-prefix      most prompt tokens in the prefix cache
//   priority            largest Arrival::priority
//   shortest-predicted  smallest forecast of the output (Efficient LLM Scheduling by Learning to
//                       Rank, NeurIPS 2024)
//   learned             least predicted work, by the router's model (learned_order.h). A request
//                       that waited Config::starvation_steps is next.
//
// Equal requests are ordered by arrival. Requests that were preempted for memory are not ranked:
// the queue puts them before all others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/ids.h"
#include "common/plan/group.h"
#include "scheduler/config.h"

namespace penstock::scheduler {

struct WaitingRequest;

// The queue owns each WaitingRequest, which does not move between Add and Remove.
class OrderPolicy {
 public:
  virtual ~OrderPolicy() = default;

  virtual void Add(WaitingRequest& request) = 0;
  virtual void Remove(WaitingRequest& request) = 0;

  // The request to admit next to this group; null when none waits.
  virtual WaitingRequest* Next(GroupId group) = 0;

  // The first of all requests, and those directly before and after one; null at the ends. All
  // three are null if the order differs between groups or changes without Add and Remove.
  virtual WaitingRequest* First() = 0;
  virtual WaitingRequest* Before(const WaitingRequest& request) = 0;
  virtual WaitingRequest* After(const WaitingRequest& request) = 0;
};

// For fcfs, priority and shortest-predicted, whose ranks depend on the request alone.
std::unique_ptr<OrderPolicy> MakeKeyOrder(Order order);

constexpr std::size_t kOrders = 5;
std::string_view OrderName(Order order);
std::optional<Order> FindOrder(std::string_view name);

// The starvation bound (guarantee G6): how often a waiting request can be overtaken, at most, by
// requests that arrived later.
std::uint32_t MaxOvertakes(const Config& config);
// Steps after which a waiting request is due; 0 = never.
std::uint32_t MaxWait(const Config& config);

// The most steps of its group that a request waits. Holds for guaranteed admission, continuous
// batching, one group and one row for each decode.
//
// Proof. At most slots + queue + MaxOvertakes requests are before it: running ones, waiting ones,
// and ones that overtake it. While it waits, the group is never empty. The running request that was
// admitted first gains a token of its prompt or output in every step, except in steps in flight
// when it ends. So its slot is free after max_sequence_length + pipeline_depth steps.
std::uint64_t MaxWaitSteps(const Config& config, const GroupCapacity& capacity);

// One line for the log: the order and its bounds.
std::string DescribeOrder(const Config& config, const GroupCapacity& capacity);

}  // namespace penstock::scheduler
