// What happens to a simulated server: its settings, its groups, and a script of what clients do and
// what breaks, with times. Everything is drawn from one 64-bit seed; a shrunk scenario is the same
// with fewer script events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/plan/group.h"
#include "common/time.h"
#include "scheduler/config.h"
#include "scheduler/input.h"

namespace penstock::sim {

// --- What the clients do

struct ClientArrives {
  scheduler::Arrival arrival;
  std::uint32_t stop_string_at = 0;  // token after which the router finds a stop string; 0 = never
  std::uint32_t gives_up_at = 0;     // token after which the client goes away; 0 = never
  Duration reaction{0};              // of the router, from the token to the input
};
struct ClientCancels {  // also one that is not there, or has ended
  RequestId request;
};
struct StopStringClaimed {  // at any token count, found or yet to come
  RequestId request;
  std::uint32_t token_count = 0;
};

// --- What breaks

struct RankDies {  // the group is lost at once, and formed anew after `away`
  GroupId group;
  Duration away{0};
};
struct ResultIsLost {  // the next result never comes; the watchdog gives the group up
  GroupId group;
  Duration away{0};
};
struct ResultComesAgain {  // the newest delivered result a second time
  GroupId group;
};
struct GroupStalls {  // its plans take that much longer from now on, once
  GroupId group;
  Duration time{0};
};
struct GroupFormedAnew {  // GroupUp without GroupLost before it
  GroupId group;
};
struct OperatorDrains {};
struct OperatorForgets {  // kept prefixes of a tenant, or the one that this request made
  std::string tenant;
  std::optional<RequestId> made_by;
};

using ScriptEvent =
    std::variant<ClientArrives, ClientCancels, StopStringClaimed, RankDies, ResultIsLost,
                 ResultComesAgain, GroupStalls, GroupFormedAnew, OperatorDrains, OperatorForgets>;

struct TimedEvent {
  Time at;
  ScriptEvent what;
};

struct Scenario {
  std::uint64_t seed = 0;  // of step times and network delays, and of what the shards say
  scheduler::Config config;
  std::vector<GroupCapacity> groups;  // GroupId is the index
  std::vector<Duration> up_at;        // when each group is formed first
  Calibration calibration;            // of every group, as its warm-up measured it
  std::uint32_t eos_one_in = 0;
  std::uint32_t error_one_in = 0;
  bool late_results = false;  // results of a lost epoch arrive after the group is formed anew
  Duration step_base{0};
  Duration step_per_row{0};
  Duration network{0};             // the longest delay of a result
  std::vector<TimedEvent> script;  // in any order of time
};

// Draws everything from the seed: sizes, settings, load and faults.
Scenario DrawScenario(std::uint64_t seed);

}  // namespace penstock::sim
