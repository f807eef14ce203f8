// The barrier of rank 0, which decides for all ranks. A call runs when every rank has received it,
// on all ranks in the same order. A call that has not reached all ranks by its deadline fails on
// the ranks that received it, and has changed nothing anywhere. Because rank 0 alone decides, no
// rank runs a call that another one has given up.
//
// The barrier also names the group in which a call runs. It chooses a new name when a rank has lost
// the present group: its process was restarted, its engine failed, or the native driver took the
// shard.
//
// Thread-safe. With several ranks it has a thread for deadlines. The number of arrivals is bounded
// by kMaxSecondCalls of each rank.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shard/tgi/rank_barrier.h"

namespace penstock::shard {

class RootBarrier final : public RankBarrier {
 public:
  // The names of groups begin with `name`.
  RootBarrier(std::uint32_t world, std::string name);
  ~RootBarrier() override;

  void Arrive(RankArrival arrival, VerdictCallback done) override;
  void Stop() override;

  // The stream of the rank has ended: drops its arrivals without a verdict.
  void Leave(std::uint32_t rank);

 private:
  struct Waiting {
    RankArrival arrival;
    VerdictCallback done;
  };
  using Entry = std::list<Waiting>::iterator;

  std::vector<Entry> FindAll(const std::string& call);
  void Release(const std::vector<Entry>& entries);
  std::string ChooseGroup(const std::vector<Entry>& entries);
  std::string MissingRanks(const std::string& call);
  void Expire(Time now);
  Time FirstDeadline() const;
  void WatchDeadlines();

  const std::uint32_t world_;
  const std::string name_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiting> waiting_;  // in order of arrival
  std::string group_;           // empty: the next call gets a new one
  std::uint64_t groups_ = 0;
  bool stopped_ = false;
  std::thread deadlines_;
};

}  // namespace penstock::shard
