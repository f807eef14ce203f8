// Where the ranks of a group meet before they run a call: rank 0 keeps it, the others send their
// arrivals. A call runs when every rank has received it, on all ranks in the same order; what has
// not come to all ranks by its deadline fails where it came, and has changed nothing anywhere.
// Since one place decides, no rank runs a call that another one has given up.
//
// It also names the group to run in. A new name is given when a rank has lost the present group:
// its process was restarted, the engine failed, or the native driver took the shard.
//
// Thread-safe; own thread for deadlines when there is more than one rank. Arrivals are bounded by
// the callers (kMaxSecondCalls on each rank).
#pragma once

#include <absl/status/status.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/time.h"

namespace penstock::shard {

struct RankArrival {
  std::uint32_t rank = 0;
  std::string call;         // equal on all ranks for the same call
  std::uint64_t value = 0;  // the least of all ranks comes back
  std::string detail;       // must be equal on all ranks; refused by name otherwise
  std::string lost;         // the last group that the rank was told of and does not have
  Time deadline{};
};

struct RankVerdict {
  absl::Status status;
  std::uint64_t least = 0;
  std::string group;
};

// Called once, under the lock of the place: it must not block and not call back.
using VerdictCallback = std::function<void(const RankVerdict&)>;

// The place itself on rank 0, the way to it on the others.
class RankGate {
 public:
  virtual ~RankGate() = default;
  virtual void Meet(RankArrival arrival, VerdictCallback answer) = 0;
  // Answers all that wait, and all that comes later, with CANCELLED.
  virtual void Stop() = 0;
};

class MeetingPlace final : public RankGate {
 public:
  // `name` begins the names of groups.
  MeetingPlace(std::uint32_t world, std::string name);
  ~MeetingPlace() override;

  void Meet(RankArrival arrival, VerdictCallback answer) override;
  void Stop() override;

  // The rank is gone, and its arrivals with it; nobody is called back.
  void Leave(std::uint32_t rank);

 private:
  struct Waiting {
    RankArrival arrival;
    VerdictCallback answer;
  };
  using Entry = std::list<Waiting>::iterator;

  std::vector<Entry> FindAll(const std::string& call);
  void Release(const std::vector<Entry>& entries);
  std::string ChooseGroup(const std::vector<Entry>& entries);
  std::string MissingRanks(const std::string& call) const;
  void Expire(Time now);
  Time FirstDeadline() const;
  void WatchDeadlines();

  const std::uint32_t world_;
  const std::string name_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiting> waiting_;     // in order of arrival
  std::string group_;              // empty: to be named at the next call
  std::vector<std::string> told_;  // by rank, the last group that it heard of
  std::uint64_t groups_ = 0;
  bool stopped_ = false;
  std::thread deadlines_;
};

}  // namespace penstock::shard
