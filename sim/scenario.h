// What happens to a simulated server: its settings, its groups, and a script of client actions and
// faults with their times. One 64-bit seed determines all of it. A shrunk scenario has fewer script
// events.
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

// --- Client actions

struct ClientArrives {
  scheduler::Arrival arrival;
  std::uint32_t stop_string_at = 0;  // the router finds a stop string after this token; 0 = never
  std::uint32_t stop_known_at = 0;   // sooner, after this token; 0 = at stop_string_at
  std::uint32_t gives_up_at = 0;     // the client disconnects after this token; 0 = never
  Duration reaction{0};              // from the token to the input that it causes
};
struct ClientCancels {  // the request may have ended, or may not exist
  RequestId request;
};
struct StopStringFound {  // token_count may lie before or after the tokens so far
  RequestId request;
  std::uint32_t token_count = 0;
};

// --- Faults and operator actions

struct RankIsLost {  // the group is lost at once and forms again after `away`
  GroupId group;
  Duration away{0};
};
struct ResultIsLost {  // the next result never arrives; the step timeout ends the group
  GroupId group;
  Duration away{0};
};
struct ResultIsRepeated {  // the newest result arrives a second time
  GroupId group;
};
struct ResultIsEarly {  // the result of the second step in flight arrives, and once more in its
                        // turn
  GroupId group;
};
struct GroupStalls {  // its next step takes that much longer
  GroupId group;
  Duration time{0};
};
struct GroupFormsAgain {  // GroupUp without GroupLost before it
  GroupId group;
};
struct OperatorDrains {};
struct OperatorForgets {  // pinned prefixes of a tenant, or the one that `made_by` pinned
  std::string tenant;
  std::optional<RequestId> made_by;
};

using ScriptEvent = std::variant<ClientArrives, ClientCancels, StopStringFound, RankIsLost,
                                 ResultIsLost, ResultIsRepeated, ResultIsEarly, GroupStalls,
                                 GroupFormsAgain, OperatorDrains, OperatorForgets>;

struct TimedEvent {
  Time at;
  ScriptEvent what;
};

struct Scenario {
  std::uint64_t seed = 0;  // of step times, network delays and results
  scheduler::Config config;
  std::vector<GroupCapacity> groups;              // GroupId is the index
  std::vector<std::uint64_t> arithmetic_classes;  // of each group
  std::vector<Duration> up_at;                    // when each group forms first
  Calibration calibration;                        // the warm-up measurements of every group
  std::uint32_t eos_one_in = 0;
  std::uint32_t error_one_in = 0;
  bool ends_unnamed = false;        // clients end requests that no plan in flight names
  std::optional<RequestId> poison;  // its first starts end the group that computes them
  bool late_results = false;        // results of a lost epoch arrive after the group forms again
  Duration step_base{0};
  Duration step_per_row{0};
  Duration network{0};             // the largest delay of a result
  std::vector<TimedEvent> script;  // in any order
};

// Draws sizes, settings, load and faults from the seed.
Scenario DrawScenario(std::uint64_t seed);

}  // namespace penstock::sim
