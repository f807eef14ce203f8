// What router/dispatch counts for each replica group: state, losses, Execute messages, plans in
// flight. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "common/ids.h"
#include "router/metrics/block_gauges.h"
#include "router/metrics/families.h"

namespace penstock::router {

// What the ranks of a replica group keep for the texts, all ranks together.
struct CacheSizes {
  struct KvGroup {
    std::uint64_t bytes_per_token = 0;
    std::uint64_t layers = 0;
    std::uint64_t window = 0;  // positions; 0 = all
  };
  std::vector<KvGroup> kv_groups;
  std::uint64_t state_layers = 0;
  std::uint64_t state_bytes = 0;  // of one sequence
  std::uint64_t snapshots = 0;    // of the states of a sequence, at most
  std::uint64_t total_bytes = 0;  // allocated
};

class GroupMetrics {
 public:
  explicit GroupMetrics(Registry& registry) : make_(registry) {}

  enum class Direction : std::uint8_t { kPlan, kResult };  // router -> rank, rank -> router
  void ExecuteMessage(Direction direction, GroupId group, std::uint32_t rank) {
    const std::lock_guard lock(mutex_);
    Counter*& counter = execute_counters_[{direction, group, rank}];
    if (counter == nullptr) {
      counter =
          &execute_messages_.Add({{"direction", direction == Direction::kPlan ? "plan" : "result"},
                                  {"group", std::to_string(group.value())},
                                  {"rank", std::to_string(rank)}});
    }
    counter->Increment();
  }

  // Plans of a group that were sent and not yet answered. Their sum over the groups is shown too,
  // and the greatest value that any group had.
  void SetPlansInFlight(GroupId group, std::uint64_t plans) {
    const auto value = static_cast<double>(plans);
    const std::lock_guard lock(mutex_);
    Gauge& own = GroupOf(group).plans_in_flight;
    plans_in_flight_.Increment(value - own.Value());
    own.Set(value);
    if (value > plans_in_flight_max_.Value()) plans_in_flight_max_.Set(value);
  }

  // Each change from up to down counts as a loss.
  void SetUp(GroupId group, bool up) {
    const std::lock_guard lock(mutex_);
    Group& own = GroupOf(group);
    if (!up && own.up.Value() == 1) own.losses.Increment();
    own.up.Set(up ? 1 : 0);
  }

  void SetCacheSizes(GroupId group, const CacheSizes& sizes) {
    const prometheus::Labels labels = {{"group", std::to_string(group.value())}};
    Set(cache_bytes_.Add(labels), sizes.total_bytes);
    Set(state_layers_.Add(labels), sizes.state_layers);
    Set(state_bytes_.Add(labels), sizes.state_bytes);
    Set(snapshots_.Add(labels), sizes.snapshots);
    for (std::size_t i = 0; i < sizes.kv_groups.size(); ++i) {
      prometheus::Labels own = labels;
      own["kv_group"] = std::to_string(i);
      Set(kv_bytes_.Add(own), sizes.kv_groups[i].bytes_per_token);
      Set(kv_layers_.Add(own), sizes.kv_groups[i].layers);
      Set(kv_window_.Add(own), sizes.kv_groups[i].window);
    }
  }

  // `running`: requests being computed.
  void SetState(GroupId group, std::uint64_t running, const BlockCounts& blocks) {
    const std::lock_guard lock(mutex_);
    Group& own = GroupOf(group);
    Set(own.running, running);
    own.blocks.Show(blocks);
  }

 private:
  // The metrics of a replica group, made when the group is first used.
  struct Group {
    Gauge& up;
    Counter& losses;
    Gauge& running;
    BlockGauges blocks;
    Gauge& plans_in_flight;
  };

  // With mutex_ held.
  Group& GroupOf(GroupId id) {
    const auto found = groups_.find(id);
    if (found != groups_.end()) return found->second;
    const prometheus::Labels labels = {{"group", std::to_string(id.value())}};
    const Group made{up_.Add(labels), losses_.Add(labels), running_.Add(labels),
                     BlockGauges(blocks_, labels), plans_.Add(labels)};
    return groups_.emplace(id, made).first->second;
  }

  Families make_;
  Family<Counter>& execute_messages_ = make_.Counters(
      "penstock_execute_messages_total",
      "Messages on the Execute streams, by direction, group and rank.", "direction group rank");
  Gauge& plans_in_flight_ =
      make_.OneGauge("penstock_plans_in_flight", "Plans sent and not yet answered.");
  Gauge& plans_in_flight_max_ =
      make_.OneGauge("penstock_plans_in_flight_max",
                     "Greatest number of plans in flight in one group since the start.");
  Family<Gauge>& up_ =
      make_.Gauges("penstock_group_up", "1 while the replica group serves, else 0.", "group");
  Family<Counter>& losses_ =
      make_.Counters("penstock_group_losses_total", "How often a replica group was lost.", "group");
  Family<Gauge>& running_ = make_.Gauges("penstock_group_requests_running",
                                         "Requests being computed, by replica group.", "group");
  Family<Gauge>& blocks_ = make_.Gauges(
      "penstock_group_kv_blocks", "KV cache blocks by replica group and state.", "group state");
  Family<Gauge>& plans_ = make_.Gauges("penstock_group_plans_in_flight",
                                       "Plans sent and not yet answered, by group.", "group");
  Family<Gauge>& cache_bytes_ =
      make_.Gauges("penstock_group_kv_cache_bytes",
                   "Memory of K, V and states, all ranks, by replica group.", "group");
  Family<Gauge>& kv_bytes_ =
      make_.Gauges("penstock_group_kv_bytes_per_token",
                   "K and V of one token, all ranks, by replica group and KV group: layers that "
                   "keep every position (0), layers with a window (1).",
                   "group kv_group");
  Family<Gauge>& kv_layers_ = make_.Gauges(
      "penstock_group_kv_layers", "Layers by replica group and KV group.", "group kv_group");
  Family<Gauge>& kv_window_ = make_.Gauges(
      "penstock_group_kv_window",
      "Window of the layers of a KV group in tokens; 0: they see all tokens.", "group kv_group");
  Family<Gauge>& state_layers_ = make_.Gauges(
      "penstock_group_state_layers",
      "Recurrent layers, which keep a state of each sequence, by replica group.", "group");
  Family<Gauge>& state_bytes_ =
      make_.Gauges("penstock_group_state_bytes_per_sequence",
                   "States of one sequence, all ranks, by replica group.", "group");
  Family<Gauge>& snapshots_ = make_.Gauges(
      "penstock_group_state_snapshots",
      "Copies of the states of a sequence that the prefix cache has room for, by replica group.",
      "group");

  std::mutex mutex_;
  // Used at every step: looking a counter up by its labels would cost more than the step.
  std::map<std::tuple<Direction, GroupId, std::uint32_t>, Counter*> execute_counters_;
  std::map<GroupId, Group> groups_;
};

}  // namespace penstock::router
