#include "router/metrics/group_metrics.h"

#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "router/metrics/families.h"

namespace penstock::router {

struct GroupMetrics::Families {
  explicit Families(Registry& registry) : registry(registry) {}

  Registry& registry;
  // The metrics of a replica group, made when the group is first used.
  struct Group {
    Gauge& up;
    Counter& losses;
    Gauge& running;
    Gauge& blocks_free;
    Gauge& blocks_used;
    Gauge& blocks_cached;
    Gauge& blocks_retiring;
    Gauge& plans_in_flight;
  };
  Group& GroupOf(GroupId id);  // with mutex held

  Family<Counter>& execute_messages =
      Counters(registry, "penstock_execute_messages_total",
               "Messages on the Execute streams, by direction, group and rank.");
  Gauge& plans_in_flight =
      OneGauge(registry, "penstock_plans_in_flight", "Plans sent and not yet answered.");
  Gauge& plans_in_flight_max =
      OneGauge(registry, "penstock_plans_in_flight_max",
               "Greatest number of plans in flight in one group since the start.");
  Family<Gauge>& group_up =
      Gauges(registry, "penstock_group_up", "1 while the replica group serves, else 0.");
  Family<Counter>& group_losses =
      Counters(registry, "penstock_group_losses_total", "How often a replica group was lost.");
  Family<Gauge>& group_running = Gauges(registry, "penstock_group_requests_running",
                                        "Requests being computed, by replica group.");
  Family<Gauge>& group_blocks =
      Gauges(registry, "penstock_group_kv_blocks", "KV cache blocks by replica group and state.");
  Family<Gauge>& group_plans = Gauges(registry, "penstock_group_plans_in_flight",
                                      "Plans sent and not yet answered, by group.");

  std::mutex mutex;
  // Used at every step: looking a counter up by its labels would cost more than the step.
  std::map<std::tuple<Direction, GroupId, std::uint32_t>, Counter*> execute_counters;
  std::map<GroupId, Group> groups;
};

GroupMetrics::Families::Group& GroupMetrics::Families::GroupOf(GroupId id) {
  const auto found = groups.find(id);
  if (found != groups.end()) return found->second;
  const std::string name = std::to_string(id.value());
  const auto blocks = [&](const char* state) -> Gauge& {
    return group_blocks.Add({{"group", name}, {"state", state}});
  };
  const Group made{group_up.Add({{"group", name}}),
                   group_losses.Add({{"group", name}}),
                   group_running.Add({{"group", name}}),
                   blocks("free"),
                   blocks("used"),
                   blocks("cached"),
                   blocks("retiring"),
                   group_plans.Add({{"group", name}})};
  return groups.emplace(id, made).first->second;
}

GroupMetrics::GroupMetrics(Registry& registry) : own_(std::make_unique<Families>(registry)) {}
GroupMetrics::~GroupMetrics() = default;

void GroupMetrics::ExecuteMessage(Direction direction, GroupId group, std::uint32_t rank) {
  const std::lock_guard lock(own_->mutex);
  Counter*& counter = own_->execute_counters[{direction, group, rank}];
  if (counter == nullptr) {
    const char* name = direction == Direction::kPlan ? "plan" : "result";
    counter = &own_->execute_messages.Add({{"direction", name},
                                           {"group", std::to_string(group.value())},
                                           {"rank", std::to_string(rank)}});
  }
  counter->Increment();
}

void GroupMetrics::SetPlansInFlight(GroupId group, std::uint64_t plans) {
  const auto value = static_cast<double>(plans);
  const std::lock_guard lock(own_->mutex);
  Gauge& own = own_->GroupOf(group).plans_in_flight;
  own_->plans_in_flight.Increment(value - own.Value());
  own.Set(value);
  if (value > own_->plans_in_flight_max.Value()) own_->plans_in_flight_max.Set(value);
}

void GroupMetrics::SetUp(GroupId group, bool up) {
  const std::lock_guard lock(own_->mutex);
  Families::Group& own = own_->GroupOf(group);
  if (!up && own.up.Value() == 1) own.losses.Increment();
  own.up.Set(up ? 1 : 0);
}

void GroupMetrics::SetState(GroupId group, const State& state) {
  const std::lock_guard lock(own_->mutex);
  Families::Group& own = own_->GroupOf(group);
  own.running.Set(static_cast<double>(state.running));
  own.blocks_used.Set(static_cast<double>(state.blocks_used));
  own.blocks_cached.Set(static_cast<double>(state.blocks_cached));
  own.blocks_retiring.Set(static_cast<double>(state.blocks_retiring));
  own.blocks_free.Set(static_cast<double>(state.blocks_free));
}

}  // namespace penstock::router
