// All ranks of one replica group: formation in the order of the protocol, then one plan to every
// rank and one result back, with the digests of the other ranks compared as they come.
//
// A stream that ends, an error, or digests that differ lose the group: OnGroupLost comes once and
// names the rank. Nothing comes after it.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/plan/group.h"
#include "common/time.h"
#include "router/dispatch/shard_client.h"

namespace penstock::router {

class Metrics;

struct GroupLinkOptions {
  GroupId group{0};
  std::string name;                  // begins each message: "group 1"; empty = the only one
  std::vector<std::string> sockets;  // addresses of ShardClient, by rank
  std::shared_ptr<const TlsIdentity> tls = nullptr;  // for those on TCP
  Epoch epoch{1};
  std::string rendezvous;                 // fresh name, e.g. with pid and epoch
  std::uint32_t max_step_tokens = 512;    // 0 = 512 on CPU, 2,048 on CUDA
  std::uint32_t max_sequences = 128;      // slots
  std::uint32_t max_sequence_length = 0;  // 0 = what the model was made for
  std::uint32_t max_candidates = 0;       // of contrastive search; 0 = off
  std::uint32_t max_decode_rows = 1;      // of a sequence in a step: 1 + drafts
  std::stop_token stop;                   // ends the formation early
  // The launcher watches the progress of loading; this ends a router that waits alone.
  std::chrono::milliseconds startup_timeout{std::chrono::hours(1)};
  // A rank on this machine whose process answers nothing for so long, while the group is formed or
  // has a plan in flight, is lost; 0 = never.
  std::chrono::milliseconds rank_timeout{0};
};

// What came out of formation.
struct GroupFormed {
  GroupId group;
  Epoch epoch;
  ShardFacts facts;  // of rank 0; the others agree in all that matters
  GroupCapacity capacity;
  Calibration calibration;
};

// Called by the thread that polls the streams' queue; must not block and must not destroy the link.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
  virtual void OnStepDone(GroupId group, StepResult result) = 0;
  virtual void OnGroupLost(GroupId group, Epoch epoch, std::string reason) = 0;
};

class GroupLink final : private ExecuteListener {
 public:
  using Progress = std::function<void(std::uint32_t rank, const ShardLoadProgress&)>;

  // Blocks until the group is committed or the startup timeout has passed. `progress` is called
  // from one thread per rank. `metrics` may be null.
  static absl::StatusOr<std::unique_ptr<GroupLink>> Form(GroupLinkOptions options,
                                                         const Progress& progress,
                                                         Metrics* metrics);
  ~GroupLink() override;

  const GroupFormed& formed() const { return formed_; }

  // Opens Execute on every rank; `queue` brings the results. The listener must outlive the link or
  // the end of Close.
  void Open(GroupListener* listener, const std::shared_ptr<ExecuteQueue>& queue);

  // Any thread; never blocks.
  void Send(const StepPlan& plan);

  // When the oldest plan without all its results was sent; nothing in flight: nullopt.
  std::optional<Time> OldestInFlight() const;
  // When the ranks should be asked for a sign of life: results are signs enough, so only once a
  // plan has been out for long, and from then on about once a second. Nothing is to be asked:
  // nullopt.
  std::optional<Time> NextLifeCheck() const;
  // Asks them; who does not answer in time is lost like one whose stream ends. The thread that
  // polls the streams' queue.
  void AskForLife(Time now);
  // The first rank that has not answered the oldest plan, for "which rank hangs".
  std::string DescribeOldest() const;

  // Begins the end of all streams and returns at once; no listener call after it has returned. For
  // a lost group, whose end another thread can wait for (Close, the destructor). Not from a
  // listener call.
  void Abandon();
  // Ends all streams; no listener call after it has returned.
  void Close();

 private:
  struct InFlight {
    Time sent;
    std::vector<std::optional<std::uint64_t>> digests;  // by rank
    std::optional<StepResult> result;                   // of rank 0, until it may go on
  };

  GroupLink(GroupLinkOptions options, Metrics* metrics);

  absl::Status RunFormation(const Progress& progress);
  absl::Status DescribeAll(ShardClient::Deadline deadline, const Progress& progress);
  absl::Status ConfigureAll(ShardClient::Deadline deadline);
  absl::Status WarmupAndCommit(ShardClient::Deadline deadline);
  // Runs `call` for every rank at the same time; the first error in rank order.
  absl::Status OnAllRanks(const std::function<absl::Status(ShardClient&)>& call);

  void OnResult(std::uint32_t rank, StepResult result) override;
  void OnStreamEnd(std::uint32_t rank, absl::Status status) override;
  // The reason when the result breaks the group. With mutex_ held.
  std::optional<std::string> Reconcile(std::uint32_t rank, StepResult result);
  // Results that may go on: a step's once every rank has answered the step before it. So a rank
  // that lags holds the pipeline, at most one step beyond its depth. With mutex_ held.
  std::vector<StepResult> TakeReady();
  // Plans that rank 0 has not answered: the pipeline's depth. With mutex_ held.
  std::uint64_t WithoutResult() const;
  std::chrono::milliseconds LifePause() const;
  void Lose(std::string reason);
  // From now on the listener hears nothing.
  void Silence();

  GroupLinkOptions options_;
  Metrics* metrics_;
  GroupFormed formed_;
  GroupListener* listener_ = nullptr;

  mutable std::mutex mutex_;
  std::map<StepId, InFlight> in_flight_;  // until every rank has answered
  Time last_asked_{};                     // for a sign of life
  bool over_ = false;                     // lost or closed: the listener hears nothing more

  std::mutex listener_mutex_;  // one listener call at a time, none after Close
  std::vector<std::unique_ptr<ShardClient>> ranks_;  // last: its streams call back into the rest
};

}  // namespace penstock::router
