#include "shard/tgi/root_barrier.h"

#include <algorithm>
#include <utility>

#include "common/status.h"

namespace penstock::shard {
namespace {

absl::Status Stopping() { return absl::CancelledError("the shard is stopping"); }

}  // namespace

RootBarrier::RootBarrier(std::uint32_t world, std::string name)
    : world_(world), name_(std::move(name)) {
  if (world_ > 1) deadlines_ = std::thread([this] { WatchDeadlines(); });
}

RootBarrier::~RootBarrier() { Stop(); }

void RootBarrier::Arrive(RankArrival arrival, VerdictCallback done) {
  std::lock_guard lock(mutex_);
  if (stopped_ || arrival.rank >= world_) {
    done({stopped_ ? Stopping()
                   : BadValue("rank", std::to_string(arrival.rank),
                              "below " + std::to_string(world_) + ", the ranks of the group"),
          0,
          {}});
    return;
  }
  const std::string call = arrival.call;
  waiting_.push_back({std::move(arrival), std::move(done)});
  const std::vector<Entry> all = FindAll(call);
  if (all.size() == world_) Release(all);
  changed_.notify_one();
}

// Returns for each rank its earliest entry that waits at `call`.
std::vector<RootBarrier::Entry> RootBarrier::FindAll(const std::string& call) {
  std::vector<bool> seen(world_, false);
  std::vector<Entry> found;
  for (auto entry = waiting_.begin(); entry != waiting_.end(); ++entry) {
    const RankArrival& arrival = entry->arrival;
    if (arrival.call != call || seen[arrival.rank]) continue;
    seen[arrival.rank] = true;
    found.push_back(entry);
  }
  return found;
}

void RootBarrier::Release(const std::vector<Entry>& entries) {
  RankVerdict verdict;
  verdict.group = ChooseGroup(entries);
  const RankArrival& first = entries.front()->arrival;
  verdict.least = first.value;
  for (Entry entry : entries) {
    const RankArrival& arrival = entry->arrival;
    verdict.least = std::min(verdict.least, arrival.value);
    if (arrival.detail == first.detail || !verdict.status.ok()) continue;
    verdict.status = absl::FailedPreconditionError(
        "rank " + std::to_string(arrival.rank) + " has \"" + arrival.detail + "\", rank " +
        std::to_string(first.rank) + " has \"" + first.detail + "\"");
  }
  for (Entry entry : entries) {
    entry->done(verdict);
    waiting_.erase(entry);
  }
}

std::string RootBarrier::ChooseGroup(const std::vector<Entry>& entries) {
  const bool lost = std::any_of(entries.begin(), entries.end(),
                                [&](Entry entry) { return entry->arrival.lost == group_; });
  if (lost || group_.empty()) group_ = name_ + "-" + std::to_string(++groups_);
  return group_;
}

void RootBarrier::Leave(std::uint32_t rank) {
  std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const Waiting& each) { return each.arrival.rank == rank; });
  // A restarted process of this rank does not have the group.
  if (rank < world_) group_.clear();
}

std::string RootBarrier::MissingRanks(const std::string& call) {
  std::vector<bool> here(world_, false);
  for (Entry entry : FindAll(call)) here[entry->arrival.rank] = true;
  std::string missing;
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    if (!here[rank]) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
  }
  return missing;
}

void RootBarrier::Expire(Time now) {
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    if (entry->arrival.deadline > now) {
      ++entry;
      continue;
    }
    entry->done({absl::DeadlineExceededError(
                     "the call came to rank " + std::to_string(entry->arrival.rank) +
                     ", not to rank " + MissingRanks(entry->arrival.call) + " of " +
                     std::to_string(world_) + ": every rank must be called"),
                 0,
                 {}});
    entry = waiting_.erase(entry);
  }
}

Time RootBarrier::FirstDeadline() const {
  Time first = Time::max();
  for (const Waiting& each : waiting_) first = std::min(first, each.arrival.deadline);
  return first;
}

void RootBarrier::WatchDeadlines() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const Time first = FirstDeadline();
    if (first == Time::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, std::chrono::steady_clock::time_point(first.time_since_epoch()));
    }
    Expire(SteadyNow());
  }
}

void RootBarrier::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const Waiting& each : waiting_) each.done({Stopping(), 0, {}});
    waiting_.clear();
  }
  changed_.notify_one();
  if (deadlines_.joinable()) deadlines_.join();
}

}  // namespace penstock::shard
