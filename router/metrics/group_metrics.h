// What router/dispatch counts for each replica group: state, losses, Execute messages, plans in
// flight. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>

#include "common/ids.h"

namespace prometheus {
class Registry;
}

namespace penstock::router {

class GroupMetrics {
 public:
  explicit GroupMetrics(prometheus::Registry& registry);
  ~GroupMetrics();

  enum class Direction : std::uint8_t { kPlan, kResult };  // router -> rank, rank -> router
  struct State {
    std::uint64_t running = 0;  // requests
    std::uint64_t blocks_free = 0;
    std::uint64_t blocks_used = 0;
    std::uint64_t blocks_cached = 0;
    std::uint64_t blocks_retiring = 0;
  };
  void ExecuteMessage(Direction direction, GroupId group, std::uint32_t rank);
  // Plans of a group that were sent and not yet answered. Their sum over the groups is shown too,
  // and the greatest value that any group had.
  void SetPlansInFlight(GroupId group, std::uint64_t plans);
  void SetUp(GroupId group, bool up);  // each change from up to down counts as a loss
  void SetState(GroupId group, const State& state);

 private:
  struct Families;
  std::unique_ptr<Families> own_;
};

}  // namespace penstock::router
