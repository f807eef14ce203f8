// Keeps the replica groups formed. Forms all of them in parallel at the start, and each again after
// its loss, with a back-off between attempts. All groups must have the first one's model. A group
// with another model is refused by name and tried again later.
//
// Each group has a thread, which sleeps while the group is up.
#pragma once

#include <absl/status/status.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "router/dispatch/group_link.h"

namespace penstock::router {

class Metrics;

struct FleetOptions {
  std::vector<GroupLinkOptions> groups;  // group ids from 0; the fleet sets epochs and rendezvous
  bool reattach = false;                 // whether a lost group is formed again
  // If true, the start succeeds with the first group that is formed, and fails when the first
  // attempt of every group has failed. If false, all groups must be formed, and the first failure
  // fails the start.
  bool start_with_any = false;
  // Failed attempts do not fail the start; needs `reattach` and `start_with_any`.
  bool patient = false;
  std::chrono::milliseconds first_pause{100};  // doubles with each failure
  std::chrono::milliseconds longest_pause{5'000};
};

class GroupFleet {
 public:
  using Attach = std::function<void(std::unique_ptr<GroupLink>)>;

  // The metrics must outlive it.
  GroupFleet(FleetOptions options, Metrics& metrics);
  ~GroupFleet();  // Stop
  GroupFleet(const GroupFleet&) = delete;
  GroupFleet& operator=(const GroupFleet&) = delete;

  // Begins to form the groups. `started` is called once, from another thread, when the start has
  // succeeded or failed.
  void Start(std::function<void(const absl::Status&)> started);

  // After a successful start: what all groups formed so far have in common. Sizes are the smallest.
  GroupFormed Agreed() const;

  // Passes the groups formed so far, and each later one, to `attach`. Calls come from this thread
  // or one of the fleet, until Stop returns.
  void Serve(Attach attach);

  // Waits in the background for the streams of a lost group to end. With `reattach` forms the group
  // again. Does not block.
  void Lost(std::unique_ptr<GroupLink> lost);

  // Ends attempts in progress. Nothing is attached after it has returned.
  void Stop();

 private:
  void Keep(std::size_t index, const std::stop_token& stop);
  GroupLinkOptions Fresh(std::size_t index, const std::stop_token& stop) const;
  absl::Status Offer(std::unique_ptr<GroupLink> link);
  absl::Status CheckAgreement(const GroupFormed& formed) const;  // with mutex_ held
  // The outcome of a group's first attempt; of every one if patient.
  void CountForStart(const absl::Status& status);
  void AwaitLoss(std::size_t index, const std::stop_token& stop);

  const FleetOptions options_;
  Metrics& metrics_;
  std::function<void(const absl::Status&)> started_;

  mutable std::mutex mutex_;
  std::condition_variable_any news_;
  std::optional<GroupFormed> agreed_;
  std::vector<std::unique_ptr<GroupLink>> formed_;  // not yet attached
  std::vector<std::unique_ptr<GroupLink>> lost_;    // by group; until its thread takes it
  Attach attach_;
  std::size_t came_ = 0;    // groups whose first attempt went well
  std::size_t failed_ = 0;  // groups whose first attempt did not
  absl::Status first_error_;
  bool reported_ = false;

  std::vector<std::jthread> keepers_;  // last: they use all of the above
};

}  // namespace penstock::router
