#include "router/dispatch/group_link.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "common/status.h"
#include "router/metrics/metrics.h"

namespace penstock::router {
namespace {

constexpr auto kMostLifePause = std::chrono::milliseconds(1'000);
constexpr auto kCloseGrace = std::chrono::milliseconds(500);
constexpr std::uint32_t kCpuStepTokens = 512;
constexpr std::uint32_t kCudaStepTokens = 2048;

std::string RankName(std::uint32_t rank) { return "shard " + std::to_string(rank); }

absl::Status CheckAgreement(const ShardFacts& first, const ShardFacts& other, std::size_t world) {
  const std::string who = RankName(other.rank);
  if (other.world_size != world) {
    return BadValue(who + ".world_size", std::to_string(other.world_size), std::to_string(world));
  }
  if (other.fingerprint != first.fingerprint) {
    return BadValue(who + ".fingerprint", other.fingerprint,
                    first.fingerprint + " as on " + RankName(first.rank));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<GroupLink>> GroupLink::Form(GroupLinkOptions options,
                                                           const Progress& progress,
                                                           Metrics* metrics) {
  std::unique_ptr<GroupLink> link(new GroupLink(std::move(options), metrics));
  absl::Status formed = link->RunFormation(progress);
  if (formed.ok()) return link;
  const std::string& name = link->options_.name;
  return name.empty() ? formed : WithContext(formed, name);
}

GroupLink::GroupLink(GroupLinkOptions options, Metrics* metrics)
    : options_(std::move(options)), metrics_(metrics) {
  formed_.group = options_.group;
  formed_.epoch = options_.epoch;
  for (std::size_t rank = 0; rank < options_.sockets.size(); ++rank) {
    ranks_.push_back(std::make_unique<ShardClient>(options_.sockets[rank],
                                                   static_cast<std::uint32_t>(rank), options_.stop,
                                                   options_.tls.get(), options_.rank_timeout));
  }
}

GroupLink::~GroupLink() { Close(); }

absl::Status GroupLink::RunFormation(const Progress& progress) {
  const auto deadline = std::chrono::system_clock::now() + options_.startup_timeout;
  PENSTOCK_RETURN_IF_ERROR(DescribeAll(deadline, progress));
  PENSTOCK_RETURN_IF_ERROR(ConfigureAll(deadline));
  return WarmupAndCommit(deadline);
}

absl::Status GroupLink::OnAllRanks(const std::function<absl::Status(ShardClient&)>& call) {
  std::vector<absl::Status> statuses(ranks_.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    threads.emplace_back([&, i] { statuses[i] = call(*ranks_[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  for (absl::Status& status : statuses) PENSTOCK_RETURN_IF_ERROR(std::move(status));
  return absl::OkStatus();
}

absl::Status GroupLink::DescribeAll(ShardClient::Deadline deadline, const Progress& progress) {
  std::vector<ShardFacts> facts(ranks_.size());
  PENSTOCK_RETURN_IF_ERROR(OnAllRanks([&](ShardClient& shard) -> absl::Status {
    PENSTOCK_RETURN_IF_ERROR(shard.Describe(deadline).status());
    PENSTOCK_RETURN_IF_ERROR(shard.WatchLoad(
        deadline, [&](const ShardLoadProgress& now) { progress(shard.rank(), now); }));
    PENSTOCK_ASSIGN_OR_RETURN(facts[shard.rank()], shard.Describe(deadline));
    return absl::OkStatus();
  }));
  for (const ShardFacts& other : facts) {
    PENSTOCK_RETURN_IF_ERROR(CheckAgreement(facts.front(), other, ranks_.size()));
  }
  formed_.facts = facts.front();
  return absl::OkStatus();
}

absl::Status GroupLink::ConfigureAll(ShardClient::Deadline deadline) {
  const ShardFacts& facts = formed_.facts;
  GroupCapacity& capacity = formed_.capacity;
  capacity.block_size = facts.block_size;
  capacity.padded_attention = facts.padded_attention;
  capacity.shares_blocks = facts.shares_blocks;
  capacity.slots = options_.max_sequences;
  capacity.max_step_tokens = options_.max_step_tokens;
  if (capacity.max_step_tokens == 0) {
    capacity.max_step_tokens = facts.device == "cpu" ? kCpuStepTokens : kCudaStepTokens;
  }
  capacity.max_sequence_length = facts.max_position;
  if (options_.max_sequence_length > 0) {
    capacity.max_sequence_length = std::min(options_.max_sequence_length, facts.max_position);
  }
  if (options_.max_candidates > 0 && !facts.contrastive_search) {
    return absl::FailedPreconditionError(
        "`contrastive-search` needs shards that were started with it, too; these do not offer it");
  }
  capacity.max_candidates = std::min(options_.max_candidates, capacity.max_step_tokens);
  ShardConfiguration configuration;
  configuration.epoch = options_.epoch;
  configuration.world_size = static_cast<std::uint32_t>(ranks_.size());
  configuration.rendezvous = options_.rendezvous;
  configuration.fingerprint = facts.fingerprint;
  configuration.max_step_tokens = capacity.max_step_tokens;
  configuration.max_sequences = capacity.slots;
  configuration.max_sequence_length = capacity.max_sequence_length;
  configuration.max_candidates = capacity.max_candidates;
  configuration.max_decode_rows = std::min(options_.max_decode_rows, capacity.max_step_tokens);
  return OnAllRanks([&](ShardClient& shard) { return shard.Configure(configuration, deadline); });
}

absl::Status GroupLink::WarmupAndCommit(ShardClient::Deadline deadline) {
  std::vector<ShardWarmup> warmups(ranks_.size());
  PENSTOCK_RETURN_IF_ERROR(OnAllRanks([&](ShardClient& shard) -> absl::Status {
    PENSTOCK_ASSIGN_OR_RETURN(warmups[shard.rank()], shard.Warmup(options_.epoch, deadline));
    return absl::OkStatus();
  }));
  formed_.calibration = warmups.front().calibration;
  std::uint32_t blocks = warmups.front().blocks;
  std::uint32_t cells = warmups.front().cells;
  for (const ShardWarmup& warmup : warmups) {
    blocks = std::min(blocks, warmup.blocks);
    cells = std::min(cells, warmup.cells);
  }
  formed_.capacity.blocks = blocks;
  formed_.capacity.cells = cells;
  return OnAllRanks(
      [&](ShardClient& shard) { return shard.Commit(options_.epoch, blocks, cells, deadline); });
}

void GroupLink::Open(GroupListener* listener, const std::shared_ptr<ExecuteQueue>& queue) {
  listener_ = listener;
  for (const auto& shard : ranks_) shard->PrepareExecute(this, queue);
  for (const auto& shard : ranks_) shard->StartExecute();
}

void GroupLink::Send(const StepPlan& plan) {
  {
    const std::lock_guard lock(mutex_);
    if (over_) return;
    InFlight& entry = in_flight_[plan.step];
    entry.sent = SteadyNow();
    entry.digests.resize(ranks_.size());
    if (metrics_ != nullptr) metrics_->SetPlansInFlight(options_.group, WithoutResult());
  }
  for (const auto& shard : ranks_) {
    if (metrics_ != nullptr) {
      metrics_->ExecuteMessage(Metrics::Direction::kPlan, options_.group, shard->rank());
    }
    shard->Send(plan);
  }
}

void GroupLink::OnResult(std::uint32_t rank, StepResult result) {
  if (metrics_ != nullptr) {
    metrics_->ExecuteMessage(Metrics::Direction::kResult, options_.group, rank);
  }
  std::optional<std::string> broken;
  {
    // Held over both parts, so that results go on in the order of their steps.
    const std::lock_guard listening(listener_mutex_);
    std::vector<StepResult> ready;
    {
      const std::lock_guard lock(mutex_);
      if (over_) return;
      broken = Reconcile(rank, std::move(result));
      if (!broken.has_value()) ready = TakeReady();
      if (metrics_ != nullptr) metrics_->SetPlansInFlight(options_.group, WithoutResult());
    }
    for (StepResult& done : ready) {
      if (listener_ != nullptr) listener_->OnStepDone(options_.group, std::move(done));
    }
  }
  if (broken.has_value()) Lose(*std::move(broken));
}

std::vector<StepResult> GroupLink::TakeReady() {
  std::vector<StepResult> ready;
  while (!in_flight_.empty()) {
    InFlight& oldest = in_flight_.begin()->second;
    if (oldest.result.has_value()) {
      ready.push_back(*std::exchange(oldest.result, std::nullopt));
    }
    const auto& digests = oldest.digests;
    if (!std::all_of(digests.begin(), digests.end(), [](const auto& d) { return d.has_value(); })) {
      break;
    }
    in_flight_.erase(in_flight_.begin());
  }
  return ready;
}

std::optional<std::string> GroupLink::Reconcile(std::uint32_t rank, StepResult result) {
  const auto found = in_flight_.find(result.step);
  const std::string where = " for step " + std::to_string(result.step.value());
  if (result.epoch != options_.epoch || found == in_flight_.end() ||
      found->second.digests[rank].has_value()) {
    return RankName(rank) + " sent a result" + where + " that was not asked for";
  }
  auto& digests = found->second.digests;
  digests[rank] = result.digest;
  for (std::size_t other = 0; other < digests.size(); ++other) {
    if (digests[other].value_or(result.digest) == result.digest) continue;
    return RankName(rank) + " and " + RankName(static_cast<std::uint32_t>(other)) + " disagree" +
           where + ": their digests differ";
  }
  if (rank == 0) found->second.result = std::move(result);
  return std::nullopt;
}

std::uint64_t GroupLink::WithoutResult() const {
  return static_cast<std::uint64_t>(
      std::count_if(in_flight_.begin(), in_flight_.end(),
                    [](const auto& entry) { return !entry.second.digests[0].has_value(); }));
}

void GroupLink::OnStreamEnd(std::uint32_t rank, absl::Status status) {
  const std::string why = status.ok() ? "it closed the stream" : Message(status);
  Lose(RankName(rank) + " was lost: " + why);
}

void GroupLink::Lose(std::string reason) {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(over_, true)) return;
    in_flight_.clear();
    if (metrics_ != nullptr) metrics_->SetPlansInFlight(options_.group, 0);
  }
  for (const auto& shard : ranks_) shard->AbortExecute();
  if (!options_.name.empty()) reason = options_.name + ": " + reason;
  const std::lock_guard lock(listener_mutex_);
  if (listener_ != nullptr) {
    listener_->OnGroupLost(options_.group, options_.epoch, std::move(reason));
  }
}

std::optional<Time> GroupLink::OldestInFlight() const {
  const std::lock_guard lock(mutex_);
  if (in_flight_.empty()) return std::nullopt;
  return in_flight_.begin()->second.sent;
}

// A quarter of the time at most goes by before a question; the rest is for its answer.
std::chrono::milliseconds GroupLink::LifePause() const {
  return std::min<std::chrono::milliseconds>(kMostLifePause, options_.rank_timeout / 4);
}

std::optional<Time> GroupLink::NextLifeCheck() const {
  if (options_.rank_timeout.count() <= 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (in_flight_.empty()) return std::nullopt;
  return std::max(in_flight_.begin()->second.sent, last_asked_) + LifePause();
}

void GroupLink::AskForLife(Time now) {
  {
    const std::lock_guard lock(mutex_);
    last_asked_ = now;
  }
  for (const auto& shard : ranks_) shard->AskForLife(options_.rank_timeout - LifePause());
}

std::string GroupLink::DescribeOldest() const {
  const std::lock_guard lock(mutex_);
  if (in_flight_.empty()) return "no step is in flight";
  const auto& [step, entry] = *in_flight_.begin();
  std::size_t rank = 0;
  while (rank + 1 < entry.digests.size() && entry.digests[rank].has_value()) ++rank;
  const std::string who = options_.name.empty() ? "" : options_.name + ": ";
  return who + RankName(static_cast<std::uint32_t>(rank)) + " has not answered step " +
         std::to_string(step.value());
}

void GroupLink::Silence() {
  {
    const std::lock_guard lock(listener_mutex_);
    listener_ = nullptr;
  }
  const std::lock_guard lock(mutex_);
  over_ = true;
  if (metrics_ != nullptr) metrics_->SetPlansInFlight(options_.group, 0);
}

void GroupLink::Abandon() {
  Silence();
  for (const auto& shard : ranks_) shard->AbortExecute();
}

void GroupLink::Close() {
  Silence();
  // First all ends, then the destruction: a callback of one stream may abort the others.
  for (const auto& shard : ranks_) shard->CloseExecute(kCloseGrace);
  ranks_.clear();
}

}  // namespace penstock::router
