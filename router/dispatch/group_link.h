// All ranks of one replica group. Forms the group in the order of the protocol, then sends each
// plan to every rank and compares their results.
//
// The group is lost when a rank is: when its stream ends, when it does not answer a plan in time or
// when the digests of results differ. OnGroupLost is called once, names the rank, and is the last
// call.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "common/plan/group.h"
#include "common/time.h"
#include "router/dispatch/plans_in_flight.h"
#include "router/dispatch/shard_client.h"

namespace penstock::router {

class Metrics;
struct CacheSizes;

struct GroupLinkOptions {
  GroupId group{0};
  std::string name;                  // prefix of messages: "group 1"; empty = the only one
  std::vector<std::string> sockets;  // addresses of ShardClient, by rank
  std::shared_ptr<const TlsIdentity> tls = nullptr;  // for those on TCP
  Epoch epoch{1};
  std::string rendezvous;                 // fresh name, e.g. with pid and epoch
  std::uint32_t max_step_tokens = 512;    // 0 = 512 on CPU, 2,048 on CUDA
  std::uint32_t max_sequences = 128;      // slots
  std::uint32_t max_sequence_length = 0;  // 0 = what the model was made for
  std::uint32_t max_candidates = 0;       // of contrastive search; 0 = off
  std::uint32_t max_decode_rows = 1;      // of a sequence in a step: 1 + drafts
  std::uint32_t forced_tokens = 0;        // of a grammar in a step; 0 = all tokens are sampled
  bool snapshots = false;                 // of recurrent states, for the prefix cache
  std::stop_token stop;                   // ends the formation early
  // Ends a router that waits without a launcher, which watches the progress of loading.
  std::chrono::milliseconds startup_timeout{std::chrono::hours(1)};
  // A rank on this machine is lost when its process does not answer for this long while the group
  // is formed or has a plan in flight; 0 = never.
  std::chrono::milliseconds rank_timeout{0};
};

// What came out of formation.
struct GroupFormed {
  GroupId group;
  Epoch epoch;
  ShardFacts facts;  // of rank 0; the others agree in all that matters
  GroupCapacity capacity;
  Calibration calibration;
  std::uint64_t cache_bytes = 0;  // of all ranks
};

CacheSizes CacheSizesOf(const GroupFormed& formed);
// Equal for groups that compute the same bits: one model, backend, type and number of ranks.
std::uint64_t ArithmeticClassOf(const GroupFormed& formed);

// Called by the thread that polls the streams' queue. Must not block and must not destroy the link.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
  virtual void OnStepDone(GroupId group, StepResult result) = 0;
  // `in_order`: the shards were stopped on purpose.
  virtual void OnGroupLost(GroupId group, Epoch epoch, std::string reason, bool in_order) = 0;
};

class GroupLink final : private ExecuteListener {
 public:
  // Blocks until the group is committed or the startup timeout has passed. The metrics must outlive
  // the link.
  static absl::StatusOr<std::unique_ptr<GroupLink>> Form(GroupLinkOptions options,
                                                         Metrics& metrics);
  ~GroupLink() override;

  const GroupFormed& formed() const { return formed_; }
  const GroupLinkOptions& options() const { return options_; }

  // Opens Execute on every rank. The calling thread, which must own the queue, makes all later
  // calls and gets the listener's. A plan without all its answers after `step_timeout` loses the
  // group. The listener must live until Abandon or Close.
  void Open(GroupListener* listener, const std::shared_ptr<ExecuteQueue>& queue,
            std::chrono::milliseconds step_timeout);

  // Never blocks.
  void Send(const StepPlan& plan);

  // When CheckRanks should be called next; nullopt while no plan is in flight.
  std::optional<Time> NextCheck() const;
  // Loses the group when its oldest plan is older than the step timeout. Asks the ranks whether
  // they live when that plan has been in flight for a while, and then about once a second: results
  // prove the same.
  void CheckRanks(Time now);

  // Cancels all streams and returns at once. No listener call afterwards. Any thread may then
  // destroy the link, which waits for the streams to end. Not from a listener call.
  void Abandon();
  // Ends all streams. No listener call afterwards.
  void Close();

 private:
  GroupLink(GroupLinkOptions options, Metrics& metrics);

  absl::Status RunFormation();
  absl::Status DescribeAll(ShardClient::Deadline deadline);
  absl::Status ConfigureAll(ShardClient::Deadline deadline);
  absl::Status WarmupAndCommit(ShardClient::Deadline deadline);
  // Runs `call` for every rank at the same time; the first error in rank order.
  absl::Status OnAllRanks(const std::function<absl::Status(ShardClient&)>& call);

  void OnResult(std::uint32_t rank, StepResult result) override;
  void OnStreamEnd(std::uint32_t rank, absl::Status status) override;
  // Every way to lose a rank leads here: its stream ended, it did not answer in time, or its
  // results are wrong. The first reason counts.
  void Lose(std::string reason, bool in_order = false);
  // From now on the listener is not called.
  void Silence();
  bool asks_ranks() const { return options_.rank_timeout.count() > 0; }
  Time NextLifeCheck(Time oldest) const { return std::max(oldest, last_asked_) + LifePause(); }
  std::chrono::milliseconds LifePause() const;

  GroupLinkOptions options_;
  Metrics& metrics_;
  GroupFormed formed_;
  GroupListener* listener_ = nullptr;

  std::chrono::milliseconds step_timeout_{0};
  PlansInFlight plans_;
  Time last_asked_{};  // whether the ranks live
  bool over_ = false;  // lost or closed: the listener is not called

  std::vector<std::unique_ptr<ShardClient>> ranks_;  // last: their streams call this object
};

}  // namespace penstock::router
